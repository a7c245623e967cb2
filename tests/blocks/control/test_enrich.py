"""`enrich`: a chain on the side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flowrt.message import Outcome
from tests.blocks.chains import BROKEN, DROP, RAW, STOP, message, payload, run, variable

AFTER = payload('"after"')


def enrich(*chain: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {"type": "enrich", "body": {"process": list(chain)}, **settings}


async def test_expressions_read_the_result_of_the_chain(tmp_path: Path) -> None:
    settings = {"setBody": "vars.aside + body", "setVars": {"got": "body", "aside": '"kept"'}}
    chain = [enrich(variable("aside", '"x"'), payload('"y"'), **settings)]
    found = await message(tmp_path, chain, "before", mine=1)
    assert ("xy", {"mine": 1, "got": "y", "aside": "kept"}) == (found.body, dict(found.vars))


async def test_without_expressions_nothing_comes_back(tmp_path: Path) -> None:
    found = await message(tmp_path, [enrich(payload("1"), variable("x", "1"))], "before")
    assert ("before", {}) == (found.body, dict(found.vars))


async def test_raw_content_stays_where_only_variables_are_set(tmp_path: Path) -> None:
    for settings, raw in (({"setVars": {"x": "1"}}, True), ({"setBody": "1"}, False)):
        assert raw == (await message(tmp_path, [RAW, enrich(payload("2"), **settings)])).raw


async def test_a_drop_drops_the_message(tmp_path: Path) -> None:
    assert Outcome.DROPPED == (await run(tmp_path, [enrich(DROP), AFTER])).outcome


async def test_a_stop_ends_the_flow_with_what_was_copied_back(tmp_path: Path) -> None:
    result = await run(tmp_path, [enrich(payload('"no"'), STOP, setVars={"x": "body"}), AFTER], "b")
    assert Outcome.STOPPED == result.outcome
    assert result.message is not None
    assert ("b", {"x": "no"}) == (result.message.body, dict(result.message.vars))


async def test_an_expression_that_fails_leaves_the_message_as_it_was(tmp_path: Path) -> None:
    settings = {"setBody": '"new"', "setVars": {"good": "1", "bad": "body.missing"}}
    guarded = {
        "type": "handle-errors",
        "process": [enrich(**settings)],
        "error": [{"type": "delete-variable", "settings": {"name": "error"}}],
    }
    found = await message(tmp_path, [guarded], {"n": 1})
    assert ({"n": 1}, {}) == (found.body, dict(found.vars))


async def test_an_error_of_the_chain_fails_the_block(tmp_path: Path) -> None:
    error = 'block "enrich": block "test-broken": boom'
    assert error == str((await run(tmp_path, [enrich(BROKEN)])).error)
