"""Breakpoints, spies and mocks, put into a built service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from flowrt.engine.debug import DebugPlan, MockSettings, Probe
from flowrt.message import Outcome
from flowrt.service import Result
from tests.services import flows, load

MOCKS = TypeAdapter(dict[str, MockSettings])


def payload(value: str, name: str) -> dict[str, Any]:
    return {"type": "set-payload", "name": name, "value": value}


async def debugged(
    folder: Path, document: dict[str, Any], data: Any = None, **plan: Any
) -> tuple[Result, Probe]:
    """Invoke `main` with a plan; `mocks` are given as data."""
    plan["mocks"] = MOCKS.validate_python(plan.pop("mocks", {}))
    service = load(folder, document)
    probe = service.debug(DebugPlan(**plan))
    async with service:
        return await service.invoke("main", data), probe


async def test_a_spy_records_each_crossing_in_and_out(tmp_path: Path) -> None:
    body = {"process": [payload('{"n": vars.item}', "step")]}
    document = flows(main=[{"type": "foreach", "items": "[1, 2]", "body": body}])
    _, probe = await debugged(tmp_path, document, spies=["main.foreach[body].step"])
    first, second = probe.crossings["main.foreach[body].step"]
    assert (1, 2) == (first.seq, second.seq)
    assert {"item": 1} == first.input["variables"]
    assert [{"n": 1}, {"n": 2}] == [each.output and each.output["body"] for each in (first, second)]


async def test_what_changes_later_does_not_change_what_a_spy_saw(tmp_path: Path) -> None:
    step = {"type": "set-variable", "name": "one", "settings": {"name": "a", "value": "1"}}
    later = {"type": "set-variable", "name": "two", "settings": {"name": "a", "value": "2"}}
    _, probe = await debugged(tmp_path, flows(main=[step, later]), spies=["main.one"])
    (crossing,) = probe.crossings["main.one"]
    assert crossing.output is not None
    assert ({}, {"a": 1}) == (crossing.input["variables"], crossing.output["variables"])


async def test_a_spy_says_where_a_message_was_dropped_or_failed(tmp_path: Path) -> None:
    chain = [{"type": "filter", "name": "gate", "expr": "body.ok"}]
    _, probe = await debugged(tmp_path, flows(main=chain), {"ok": False}, spies=["main.gate"])
    assert probe.crossings["main.gate"][0].to_json()["dropped"] is True
    _, probe = await debugged(tmp_path, flows(main=chain), {}, spies=["main.gate"])
    assert "no such key: ok" in probe.crossings["main.gate"][0].to_json()["error"]


async def test_a_mock_stands_in_for_a_block_and_all_in_it(tmp_path: Path) -> None:
    inner = {"process": [payload("body.missing", "bad")]}
    chain = [{"type": "enrich", "name": "lookup", "body": inner}, payload("body.id", "last")]
    mocks = {"main.lookup": {"default": {"body": {"id": 7}, "vars": {"found": True}}}}
    result, _ = await debugged(tmp_path, flows(main=chain), {}, mocks=mocks)
    assert result.message is not None
    assert (7, {"found": True}) == (result.message.body, dict(result.message.vars))


async def test_the_first_case_that_holds_is_played(tmp_path: Path) -> None:
    cases = [
        {"when": "body.n > 10", "body": "large"},
        {"when": "body.n > 5", "error": "five is the limit"},
        {"when": "body.n > 1", "drop": True},
    ]
    mocks = {"main.step": {"cases": cases}}
    document = flows(main=[payload("body", "step")])
    large, _ = await debugged(tmp_path, document, {"n": 11}, mocks=mocks)
    failed, _ = await debugged(tmp_path, document, {"n": 6}, mocks=mocks)
    dropped, _ = await debugged(tmp_path, document, {"n": 2}, mocks=mocks)
    nothing, _ = await debugged(tmp_path, document, {"n": 0}, mocks=mocks)
    assert large.message is not None
    assert "large" == large.message.body
    assert 'block "step": five is the limit' == str(failed.error)
    assert Outcome.DROPPED is dropped.outcome
    assert "no case for this message and no default" in str(nothing.error)


async def test_what_a_mock_gives_is_never_evaluated(tmp_path: Path) -> None:
    mocks = {"main.step": {"default": {"body": "{{1+1}} ${HOME} body"}}}
    result, _ = await debugged(tmp_path, flows(main=[payload("body", "step")]), mocks=mocks)
    assert result.message is not None
    assert "{{1+1}} ${HOME} body" == result.message.body


async def test_a_mocked_failure_is_recovered_like_a_real_one(tmp_path: Path) -> None:
    chain = [
        {
            "type": "handle-errors",
            "process": [payload("body", "step")],
            "error": [payload("vars.error.message", "told")],
        }
    ]
    mocks = {"main.handle-errors[process].step": {"default": {"error": "boom"}}}
    result, _ = await debugged(tmp_path, flows(main=chain), mocks=mocks)
    assert result.message is not None
    assert 'block "step": boom' == result.message.body


async def test_a_spy_sees_what_a_mock_does(tmp_path: Path) -> None:
    mocks = {"main.step": {"default": {"body": "mocked"}}}
    _, probe = await debugged(
        tmp_path, flows(main=[payload("body", "step")]), mocks=mocks, spies=["main.step"]
    )
    output = probe.crossings["main.step"][0].output
    assert output is not None
    assert "mocked" == output["body"]


async def test_a_breakpoint_ends_the_flow_behind_its_block(tmp_path: Path) -> None:
    inner = {"process": [payload('"here"', "stop"), payload('"too far"', "next")]}
    chain = [
        {"type": "if", "condition": "true", "then": inner},
        payload('"much too far"', "last"),
    ]
    _, probe = await debugged(tmp_path, flows(main=chain), break_at="main.if[then].stop")
    seen = probe.envelope()
    assert (True, "main.if[then].stop") == (seen["reached"], seen["block"])
    assert "here" == seen["message"]["body"]


async def test_a_breakpoint_that_no_message_comes_to_is_not_reached(tmp_path: Path) -> None:
    inner = {"process": [payload("1", "stop")]}
    chain = [{"type": "if", "condition": "false", "then": inner}]
    _, probe = await debugged(tmp_path, flows(main=chain), break_at="main.if[then].stop")
    assert {"reached": False, "block": "main.if[then].stop"} == probe.envelope()


@pytest.mark.parametrize(
    ("mock", "text"),
    [
        ({}, "a mock needs cases, a default or both"),
        ({"default": {}}, "exactly one of body, error and drop, found none"),
        ({"default": {"body": 1, "error": "x"}}, "exactly one of body, error and drop"),
        ({"default": {"error": "x", "vars": {"a": 1}}}, "vars goes only with body"),
        ({"default": {"drop": False}}, "drop can only be true"),
        ({"cases": [{"body": 1}]}, "Field required"),
        ({"cases": [{"when": "body.", "body": 1}]}, "does not compile"),
        ({"defualt": {"body": 1}}, "Extra inputs"),
    ],
)
def test_a_mock_that_makes_no_sense_is_refused(mock: Any, text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        MOCKS.validate_python({"main.step": mock})


def test_a_service_that_is_not_debugged_has_no_wrapper(tmp_path: Path) -> None:
    service = load(tmp_path, flows(main=[payload("1", "step")]))
    service.debug(DebugPlan())
    (chain,) = service._chains
    assert "SetPayload" == type(chain.steps[0].block).__name__
