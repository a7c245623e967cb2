"""`validate`: rules, and the answer to who breaks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.message import Outcome
from tests.blocks.chains import DROP, RAW, Chain, message, payload, run
from tests.services import flows, load

AFTER = payload('"after"')


def validate(*rules: Any, **settings: Any) -> dict[str, Any]:
    listed = [rule if isinstance(rule, dict) else {"expr": rule} for rule in rules]
    return {"type": "validate", "rules": listed, **settings}


def reject_with(*chain: dict[str, Any]) -> dict[str, Any]:
    return {"onReject": {"process": list(chain)}}


async def test_a_message_that_keeps_every_rule_passes_untouched(tmp_path: Path) -> None:
    found = await message(tmp_path, [validate("body.n > 1", "true")], {"n": 2})
    assert ({"n": 2}, {}) == (found.body, dict(found.vars))


async def test_every_broken_rule_is_reported_and_the_flow_ends(tmp_path: Path) -> None:
    rules = [{"expr": "body.n > 5", "message": "too small"}, "body.n > 0", "body.n > 9"]
    result = await run(tmp_path, [validate(*rules), AFTER], {"n": 2})
    assert Outcome.STOPPED == result.outcome
    assert result.message is not None
    told = ["too small", "must hold: body.n > 9"]
    assert {"error": "validation_failed", "messages": told} == result.message.body
    assert {"validationErrors": told, "httpStatus": 422} == dict(result.message.vars)


async def test_the_status_can_be_chosen(tmp_path: Path) -> None:
    found = await message(tmp_path, [validate("false", rejectStatus=400)])
    assert 400 == found.vars["httpStatus"]


async def test_the_answer_can_be_made_by_a_chain(tmp_path: Path) -> None:
    answer = reject_with(payload('{"why": vars.validationErrors, "status": vars.httpStatus}'))
    result = await run(tmp_path, [validate({"expr": "false", "message": "no"}, **answer), AFTER])
    assert result.message is not None
    assert {"why": ["no"], "status": 422} == result.message.body
    assert Outcome.STOPPED == result.outcome


@pytest.mark.parametrize("empty", [{"process": []}, {}])
async def test_an_empty_answer_counts_as_none(tmp_path: Path, empty: dict[str, Any]) -> None:
    found = await message(tmp_path, [validate("false", onReject=empty)])
    assert "validation_failed" == found.body["error"]


async def test_an_answer_that_is_dropped_drops_the_message(tmp_path: Path) -> None:
    result = await run(tmp_path, [validate("false", **reject_with(DROP)), AFTER])
    assert Outcome.DROPPED == result.outcome


async def test_the_default_answer_to_raw_content_is_json(tmp_path: Path) -> None:
    assert not (await message(tmp_path, [RAW, validate("false")])).raw


@pytest.mark.parametrize("rule", ["body.missing > 1", "body.n"])
async def test_a_rule_that_cannot_be_evaluated_fails_rather_than_rejects(
    tmp_path: Path, rule: str
) -> None:
    result = await run(tmp_path, [validate("false", rule)], {"n": 1})
    assert Outcome.FAILED == result.outcome
    assert "validate rule 1: " in str(result.error)


async def test_a_rejection_inside_other_blocks_ends_the_whole_flow(tmp_path: Path) -> None:
    inner: Chain = [validate("false")]
    for block in (
        {"type": "if", "condition": "true", "then": {"process": inner}},
        {"type": "foreach", "items": "[1, 2]", "body": {"process": inner}},
        {"type": "handle-errors", "process": inner, "error": [AFTER]},
        {"type": "fork", "branches": [{"process": inner}]},
        {"type": "cache-scope", "key": '"k"', "body": {"process": inner}},
    ):
        assert Outcome.STOPPED == (await run(tmp_path, [block, AFTER])).outcome


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"rules": []}, "rules"),
        ({"rules": [{"message": "x"}]}, r"rules\[0\]"),
        ({"rules": [{"expr": "1 +"}]}, r"rules\[0\].expr"),
        ({"rules": [{"expr": "true"}], "rejectStatus": 42}, "rejectStatus"),
        ({"rules": [{"expr": "true"}], "onReject": {"process": [], "pool": 2}}, "onReject"),
        ({"rules": [{"expr": "true"}], "onreject": {"process": []}}, "onreject"),
    ],
)
def test_what_cannot_work_does_not_load(
    tmp_path: Path, settings: dict[str, Any], path: str
) -> None:
    with pytest.raises(ConfigError, match=path) as caught:
        load(tmp_path, flows(main=[{"type": "validate", **settings}]))
    assert all(fault.position for fault in caught.value.faults)
