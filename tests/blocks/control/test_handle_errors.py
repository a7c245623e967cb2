"""`handle-errors`, and what `vars.error` says of a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flowrt.message import Outcome
from tests.blocks.chains import BROKEN, DROP, STOP, message, payload, run, variable


def guarded(*chain: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "handle-errors",
        "process": list(chain),
        "error": [payload("vars.error")],
        **more,
    }


async def test_a_block_without_a_name_is_no_flow(tmp_path: Path) -> None:
    found = (await message(tmp_path, [guarded(BROKEN)])).body
    assert {"message": 'block "test-broken": boom', "flow": "", "block": "test-broken"} == found


async def test_the_block_is_the_outermost_that_failed(tmp_path: Path) -> None:
    inner = {"type": "if", "name": "outer", "condition": "true", "then": {"process": [BROKEN]}}
    found = (await message(tmp_path, [guarded(inner, name="guard")])).body
    assert ("guard", "outer") == (found["flow"], found["block"])
    assert 'block "outer": block "test-broken": boom' == found["message"]


async def test_at_the_root_the_flow_is_named_and_what_was_changed_is_there(tmp_path: Path) -> None:
    chain = [variable("kept", "7"), BROKEN]
    result = await run(tmp_path, chain, flow={"error": [payload("[vars.error.flow, vars.kept]")]})
    assert result.message is not None
    assert ["main", 7] == result.message.body


async def test_an_error_chain_may_drop_and_may_fail(tmp_path: Path) -> None:
    dropped = await run(tmp_path, [BROKEN], flow={"error": [DROP]})
    assert Outcome.DROPPED == dropped.outcome
    failed = await run(tmp_path, [BROKEN], flow={"error": [BROKEN]})
    assert "error path: " in str(failed.error)


async def test_a_stop_in_the_guarded_chain_is_no_failure_and_goes_on_up(tmp_path: Path) -> None:
    result = await run(tmp_path, [guarded(payload('"kept"'), STOP), payload('"after"')])
    assert result.message is not None
    assert "kept" == result.message.body
    assert "error" not in result.message.vars
