"""The standard blocks, each through a flow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.message import Outcome
from tests.blocks.chains import message, payload, run, variable
from tests.services import flows, load


async def test_settings_may_stand_beside_the_type_or_under_settings(tmp_path: Path) -> None:
    for chain in (
        [{"type": "set-payload", "value": '"x"'}],
        [{"type": "set-payload", "settings": {"value": '"x"'}}],
    ):
        assert "x" == (await message(tmp_path, chain)).body


async def test_a_yaml_scalar_is_the_expression_of_its_text(tmp_path: Path) -> None:
    chain = [{"type": "set-payload", "value": 100}, {"type": "set-variable", "settings":
             {"name": "flag", "value": True}}]  # fmt: skip
    found = await message(tmp_path, chain)
    assert (100, True) == (found.body, found.vars["flag"])


async def test_raw_content_must_be_text(tmp_path: Path) -> None:
    raw = {"type": "set-payload", "value": "body", "rawBody": True, "contentType": "text/html"}
    found = await message(tmp_path, [raw], "<p>")
    assert ({"contentType": "text/html", "rawData": "<p>"}, True) == (found.body, found.raw)
    assert Outcome.FAILED == (await run(tmp_path, [raw], {"a": 1})).outcome


async def test_variables_are_set_and_deleted(tmp_path: Path) -> None:
    chain = [
        variable("a", "1"),
        {"type": "delete-variable", "settings": {"name": "b"}},
        {"type": "delete-variable", "settings": {"name": "never"}},
    ]
    assert {"a": 1} == dict((await message(tmp_path, chain, b=2)).vars)


async def test_each_transform_sees_what_the_one_before_changed(tmp_path: Path) -> None:
    transforms = [
        {"setVar": "n", "value": "body.n + 1"},
        {"setBody": '{"n": vars.n}'},
        {"setBody": '{"n": body.n * 10}'},
    ]
    chain = [{"type": "multi-transform", "settings": {"transforms": transforms}}]
    assert {"n": 20} == (await message(tmp_path, chain, {"n": 1})).body


async def test_a_failing_transform_is_named_by_its_index(tmp_path: Path) -> None:
    transforms = [{"setBody": "1"}, {"setBody": "body.x"}]
    chain = [{"type": "multi-transform", "settings": {"transforms": transforms}}]
    assert "transform 1: " in str((await run(tmp_path, chain, {})).error)


def test_a_transform_has_exactly_one_form(tmp_path: Path) -> None:
    transforms = [{"setBody": "1", "setVar": "x", "value": "2"}]
    chain = [{"type": "multi-transform", "settings": {"transforms": transforms}}]
    with pytest.raises(ConfigError, match=r"transforms\[0\]"):
        load(tmp_path, flows(main=chain))


@pytest.mark.parametrize(("amount", "expected"), [(200, "big"), (5, "small")])
async def test_if_takes_one_of_two_chains(tmp_path: Path, amount: int, expected: str) -> None:
    chain = [
        {
            "type": "if",
            "condition": "body.amount > 100",
            "then": {"process": [payload('"big"')]},
            "else": {"process": [payload('"small"')]},
        }
    ]
    assert expected == (await message(tmp_path, chain, {"amount": amount})).body


async def test_if_without_else_passes_on(tmp_path: Path) -> None:
    chain = [{"type": "if", "condition": "false", "then": {"process": [payload("1")]}}]
    assert "same" == (await message(tmp_path, chain, "same")).body


async def test_a_condition_that_is_no_bool_fails_with_its_type(tmp_path: Path) -> None:
    chain = [{"type": "if", "condition": "body.x", "then": {"process": []}}]
    error = (await run(tmp_path, chain, {"x": "yes"})).error
    assert "condition must evaluate to a bool, got string" in str(error)


@pytest.mark.parametrize(("kind", "expected"), [("a", 1), ("b", 2), ("c", 3)])
async def test_switch_takes_the_first_true_case(tmp_path: Path, kind: str, expected: int) -> None:
    chain = [
        {
            "type": "switch",
            "cases": [
                {"when": 'body.kind == "a"', "process": [payload("1")]},
                {"when": 'body.kind == "b"', "name": "bee", "process": [payload("2")]},
            ],
            "default": {"process": [payload("3")]},
        }
    ]
    assert expected == (await message(tmp_path, chain, {"kind": kind})).body


async def test_handle_errors_recovers_on_the_same_message(tmp_path: Path) -> None:
    chain = [
        {
            "type": "handle-errors",
            "name": "guard",
            "process": [variable("kept", "1"), {**payload("body.missing"), "name": "bad"}],
            "error": [payload("vars.error")],
        }
    ]
    found = await message(tmp_path, chain, {})
    assert ("guard", "bad") == (found.body["flow"], found.body["block"])
    assert found.body["message"].startswith('block "bad": ')
    assert 1 == found.vars["kept"]


async def test_a_failing_recovery_names_the_scope(tmp_path: Path) -> None:
    broken = payload("body.missing")
    chain = [{"type": "handle-errors", "process": [broken], "error": [broken]}]
    assert "scope alternative: " in str((await run(tmp_path, chain, {})).error)


async def test_enrich_copies_back_only_what_is_named(tmp_path: Path) -> None:
    chain = [
        {
            "type": "enrich",
            "body": {"process": [payload('{"name": "Sam"}'), variable("aside", "1")]},
            "setVars": {"name": "body.name"},
        }
    ]
    found = await message(tmp_path, chain, "untouched")
    assert ("untouched", {"name": "Sam"}) == (found.body, dict(found.vars))


async def test_filter_drops_what_it_does_not_let_pass(tmp_path: Path) -> None:
    chain = [{"type": "filter", "expr": "body.botId == null"}]
    assert Outcome.DROPPED == (await run(tmp_path, chain, {"botId": "B1"})).outcome
    assert Outcome.COMPLETED == (await run(tmp_path, chain, {"botId": None})).outcome


async def test_flow_ref_takes_over_the_body_and_merges_the_variables(tmp_path: Path) -> None:
    document = flows(
        main=[variable("mine", "1"), {"type": "flow-ref", "settings": {"flow": "other"}}],
        other=[variable("theirs", "2"), payload('"done"')],
    )
    async with load(tmp_path, document) as service:
        result = await service.invoke("main", {})
    assert result.message is not None
    assert ("done", {"mine": 1, "theirs": 2}) == (result.message.body, dict(result.message.vars))


async def test_flow_ref_to_a_flow_that_drops_leaves_the_message(tmp_path: Path) -> None:
    document = flows(
        main=[{"type": "flow-ref", "settings": {"flow": "other"}}],
        other=[{"type": "filter", "expr": "false"}],
    )
    async with load(tmp_path, document) as service:
        result = await service.invoke("main", "same")
    assert result.message is not None
    assert "same" == result.message.body


async def test_a_one_way_flow_ref_is_finished_before_the_service_stops(tmp_path: Path) -> None:
    """FB-53."""
    document = flows(
        main=[{"type": "flow-ref", "settings": {"flow": "other", "oneWay": True}}],
        other=[{"type": "object-write", "settings": {"key": '"k"', "value": '"done"'}}],
    )
    storage = f"sqlite:{tmp_path}/s.db"
    async with load(tmp_path, document, storage) as service:
        await service.invoke("main", {})
    chain = [{"type": "object-read", "settings": {"key": '"k"'}}]
    async with load(tmp_path, flows(main=chain), storage) as service:
        result = await service.invoke("main")
    assert result.message is not None
    assert "done" == result.message.body


async def test_objects_are_written_read_and_deleted_in_both_tiers(tmp_path: Path) -> None:
    for volatile in (False, True):
        where = {"key": '"a:b"', "volatile": volatile}
        chain = [
            {"type": "object-write", "settings": where},
            {"type": "object-read", "settings": {**where, "as": "read", "existsVar": "was"}},
            {"type": "object-delete", "settings": where},
            {"type": "object-delete", "settings": where},
            {"type": "object-read", "settings": {**where, "existsVar": "is"}},
        ]
        found = await message(tmp_path, chain, {"n": [1, None]})
        assert {"read": {"n": [1, None]}, "was": True, "is": False} == dict(found.vars)
        assert found.body is None


async def test_a_default_stands_in_for_an_object_that_is_not_there(tmp_path: Path) -> None:
    settings = {"key": '"k"', "as": "x", "default": '{"facts": ""}'}
    chain = [{"type": "object-read", "settings": settings}]
    assert {"facts": ""} == (await message(tmp_path, chain)).vars["x"]


@pytest.mark.parametrize("key", [None, "", "  "])
async def test_a_storage_key_that_is_empty_is_an_error(tmp_path: Path, key: Any) -> None:
    chain = [{"type": "object-write", "settings": {"key": "body.key"}}]
    error = (await run(tmp_path, chain, {"key": key})).error
    assert "object-write key" in str(error)


async def test_an_object_key_cannot_reach_a_conversation(tmp_path: Path) -> None:
    chain = [{"type": "object-write", "settings": {"key": '"../agent-memory/t"'}}]
    async with load(tmp_path, flows(main=chain)) as service:
        await service.invoke("main", {})
        keys = (await service.storage.space("user").scan()).keys
    assert ["object/../agent-memory/t"] == [key.name for key in keys]


async def test_log_passes_the_message_on_and_hides_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = [{"type": "log", "message": '"order " + body.id', "level": "warn", "full": True}]
    found = await message(tmp_path, chain, {"id": "x", "token": "xoxb-123456789-abcdef"})
    line = json.loads(capsys.readouterr().err)
    assert ("order x", "warning") == (line["event"], line["level"])
    assert found.event_id == line["event_id"]
    assert "xoxb" not in json.dumps(line)
