"""`foreach`: a chain for each element of a list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.message import Outcome
from tests.blocks.chains import (
    BROKEN,
    DROP,
    NOTE,
    RAW,
    STOP,
    Note,
    message,
    payload,
    run,
    variable,
)
from tests.services import flows, load

AFTER = payload('"after"')


def foreach(*chain: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {"type": "foreach", "items": "body", "body": {"process": list(chain)}, **settings}


def at_two(*chain: dict[str, Any]) -> dict[str, Any]:
    return {"type": "if", "condition": "vars.item == 2", "then": {"process": list(chain)}}


async def test_iterate_carries_body_and_variables_on(tmp_path: Path) -> None:
    chain = [foreach(variable("sum", "vars.sum + vars.item"), payload("vars.sum"))]
    found = await message(tmp_path, chain, [1, 2, 3], sum=0)
    assert (6, {"sum": 6}) == (found.body, dict(found.vars))


@pytest.mark.parametrize("mode", ["iterate", "map"])
@pytest.mark.parametrize("before", [{}, {"item": "mine"}])
async def test_the_loop_variable_is_as_it_was_before(
    tmp_path: Path, mode: str, before: dict[str, str]
) -> None:
    found = await message(tmp_path, [foreach(NOTE, mode=mode)], [1, 2], **before)
    assert before == dict(found.vars)
    assert [1, 2] == [seen.vars["item"] for seen in Note.seen]


async def test_loops_within_loops_have_their_own_elements(tmp_path: Path) -> None:
    inner = foreach(NOTE, items="vars.item", mode="map")
    assert {} == dict((await message(tmp_path, [foreach(inner)], [[1, 2], [3]])).vars)
    assert [1, 2, 3] == [seen.vars["item"] for seen in Note.seen]


async def test_iterate_ends_with_a_dropped_message(tmp_path: Path) -> None:
    assert Outcome.DROPPED == (await run(tmp_path, [foreach(at_two(DROP), NOTE)], [1, 2])).outcome
    assert 1 == len(Note.seen)


async def test_iterate_ends_with_a_stop_as_the_message_is(tmp_path: Path) -> None:
    chain = [foreach(at_two(payload('"bye"'), STOP), NOTE), AFTER]
    result = await run(tmp_path, chain, [1, 2, 3])
    assert Outcome.STOPPED == result.outcome
    assert result.message is not None
    assert ("bye", {"item": 2}) == (result.message.body, dict(result.message.vars))
    assert 1 == len(Note.seen)


async def test_map_gives_each_element_a_scope_of_its_own(tmp_path: Path) -> None:
    chain = [foreach(variable("n", "vars.n + 1"), payload("vars.n"), mode="map")]
    found = await message(tmp_path, chain, [1, 2, 3], n=0)
    assert ([1, 1, 1], {"n": 0}) == (found.body, dict(found.vars))


async def test_map_keeps_what_it_has_when_stopped(tmp_path: Path) -> None:
    chain = [foreach(payload("vars.item"), at_two(STOP), mode="map"), AFTER]
    result = await run(tmp_path, chain, [1, 2, 3])
    assert Outcome.STOPPED == result.outcome
    assert result.message is not None
    assert [1, 2] == result.message.body


async def test_map_has_null_where_an_element_was_dropped(tmp_path: Path) -> None:
    chain = [foreach(at_two(DROP), payload("vars.item"), mode="map")]
    assert [1, None, 3] == (await message(tmp_path, chain, [1, 2, 3])).body


async def test_map_makes_a_list_of_raw_content_and_no_raw_content(tmp_path: Path) -> None:
    found = await message(tmp_path, [{**RAW}, foreach(RAW, items="[1]", mode="map")])
    assert (["text"], False) == ([item["rawData"] for item in found.body], found.raw)


@pytest.mark.parametrize("mode", ["iterate", "map"])
async def test_an_error_ends_the_loop(tmp_path: Path, mode: str) -> None:
    result = await run(tmp_path, [foreach(at_two(BROKEN), NOTE, mode=mode)], [1, 2, 3])
    assert 'block "foreach": block "if": block "test-broken": boom' == str(result.error)
    assert 1 == len(Note.seen)


@pytest.mark.parametrize("mode", ["iterate", "map"])
async def test_nothing_to_loop_over_is_fine(tmp_path: Path, mode: str) -> None:
    assert [] == (await message(tmp_path, [foreach(BROKEN, mode=mode)], [])).body


@pytest.mark.parametrize(
    ("body", "kind"), [({"a": 1}, "map"), ("ab", "string"), (None, "null"), (3, "int")]
)
async def test_what_is_no_list_is_named_by_its_kind(tmp_path: Path, body: Any, kind: str) -> None:
    error = (await run(tmp_path, [foreach()], body)).error
    assert f"foreach items must evaluate to an array, got {kind}" in str(error)


@pytest.mark.parametrize("settings", [{"mode": "parallel"}, {"as": ""}, {"as_": "x"}, {"items": 1}])
def test_what_cannot_work_does_not_load(tmp_path: Path, settings: dict[str, Any]) -> None:
    block = foreach(**settings)
    if "items" in settings:
        del block["items"]
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, flows(main=[block]))
    (fault,) = caught.value.faults
    assert fault.position is not None
