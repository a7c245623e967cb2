"""`split`: each element through the rest of the flow."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowrt.clock import SystemClock
from flowrt.errors import ConfigError
from flowrt.message import Outcome
from flowrt.observe.trace import Trace
from tests.blocks.chains import (
    BROKEN,
    DROP,
    HANG,
    MEET,
    NOTE,
    RAW,
    STOP,
    Hang,
    Meet,
    Note,
    message,
    payload,
    run,
    variable,
)
from tests.services import flows, load

SPLIT = {"type": "split", "items": "body"}


def bodies() -> list[Any]:
    return [seen.body for seen in Note.seen]


def fail_at(index: int) -> dict[str, Any]:
    condition = f"vars.groupIndex == {index}"
    return {"type": "if", "condition": condition, "then": {"process": [BROKEN]}}


async def test_each_element_is_a_message_of_its_own(tmp_path: Path) -> None:
    chain = [variable("mine", '"v"'), SPLIT, payload("body * 10"), NOTE]
    result = await run(tmp_path, chain, [1, 2, 3])
    assert result.message is not None
    parent = result.message.event_id
    assert [10, 20, 30] == bodies()
    for index, seen in enumerate(Note.seen):
        group = {"groupId": parent, "groupIndex": index, "groupSize": 3}
        assert {"mine": "v", **group} == dict(seen.vars)
    assert 4 == len({parent, *(seen.event_id for seen in Note.seen)})


async def test_the_caller_gets_its_message_and_the_flow_ends(tmp_path: Path) -> None:
    result = await run(tmp_path, [SPLIT, payload('"after"')], [1])
    assert Outcome.STOPPED == result.outcome
    assert result.message is not None
    assert [1] == result.message.body


async def test_the_answer_is_made_before_the_elements_are_done(tmp_path: Path) -> None:
    response = {"process": [payload('{"accepted": vars.groupSize}'), NOTE]}
    result = await run(tmp_path, [{**SPLIT, "buildResponse": response}, MEET, NOTE], [1, 2])
    assert result.message is not None
    assert {"accepted": 2} == result.message.body
    assert [{"accepted": 2}, 1, 2] == bodies()


async def test_an_answer_that_is_dropped_drops_the_caller_and_not_the_elements(
    tmp_path: Path,
) -> None:
    chain = [{**SPLIT, "buildResponse": {"process": [DROP]}}, NOTE]
    assert Outcome.DROPPED == (await run(tmp_path, chain, [1, 2])).outcome
    assert [1, 2] == bodies()


async def test_nothing_to_split_is_fine(tmp_path: Path) -> None:
    found = await message(tmp_path, [SPLIT, NOTE], [])
    assert 0 == found.vars["groupSize"]
    assert [] == bodies()


@pytest.mark.parametrize("pool", [1, 3, 8])
async def test_as_many_run_at_a_time_as_the_flow_allows(tmp_path: Path, pool: int) -> None:
    await run(tmp_path, [SPLIT, MEET], list(range(30)), flow={"pool": pool})
    assert pool == Meet.most


async def test_ten_thousand_elements_go_through(tmp_path: Path) -> None:
    await run(tmp_path, [SPLIT, NOTE], list(range(10_000)))
    assert list(range(10_000)) == bodies()


async def test_a_stop_or_a_drop_ends_one_element_only(tmp_path: Path) -> None:
    for end in (STOP, DROP):
        Note.seen.clear()
        case = {"type": "if", "condition": "body == 2", "then": {"process": [end]}}
        await run(tmp_path, [SPLIT, case, NOTE], [1, 2, 3])
        assert [1, 3] == bodies()


async def test_an_element_that_fails_leaves_a_line_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = await run(tmp_path, [SPLIT, fail_at(1), NOTE], ["a", "b", "c"], flow={"pool": 1})
    assert Outcome.STOPPED == result.outcome
    assert ["a", "c"] == bodies()
    (line,) = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert ("an element failed", 1) == (line["event"], line["index"])
    assert "boom" in line["error"]


async def test_an_element_that_fails_can_recover_in_the_error_chain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = {"error": [variable("why", "vars.error.block"), NOTE]}
    await run(tmp_path, [SPLIT, fail_at(1)], ["a", "b", "c"], flow=flow)
    assert [("b", "if")] == [(seen.body, seen.vars["why"]) for seen in Note.seen]
    assert "" == capsys.readouterr().err


async def test_a_failure_can_give_up_on_the_other_elements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = [{**SPLIT, "onError": "abort"}, fail_at(1), NOTE]
    await run(tmp_path, chain, ["a", "b", "c"], flow={"pool": 1})
    assert ["a"] == bodies()
    assert "element 1 failed, the rest is given up" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "text", "parts"),
    [
        ({"mode": "lines"}, "a\r\nb\n\nc", ["a", "b", "", "c"]),
        ({"mode": "lines"}, "a\nb\n", ["a", "b"]),
        ({"mode": "lines"}, "", []),
        ({"mode": "lines"}, "a\rb", ["a\rb"]),
        ({"mode": "delimiter", "delimiter": "--"}, "a--b----c--", ["a", "b", "", "c"]),
        ({"mode": "delimiter", "delimiter": "|"}, "|a", ["", "a"]),
        ({"mode": "chunk", "chunkSize": 2}, "añ日本😀", ["añ", "日本", "😀"]),
    ],
)
async def test_text_is_cut_into_parts(
    tmp_path: Path, settings: dict[str, Any], text: str, parts: list[str]
) -> None:
    raw = {**RAW, "value": "body"}
    for before in ([], [raw]):
        Note.seen.clear()
        found = await message(tmp_path, [*before, {"type": "split", **settings}, NOTE], text)
        assert parts == bodies()
        assert len(parts) == found.vars["groupSize"]
        assert not any(seen.raw for seen in Note.seen)


@given(st.lists(st.text("ab\r", max_size=3), max_size=6), st.booleans())
def test_lines_come_back_as_they_were_joined(lines: list[str], closed: bool) -> None:
    text = "\n".join(lines) + ("\n" if closed and lines else "")
    expected = [line.removesuffix("\r") for line in lines]
    if not closed and expected and not lines[-1]:
        expected.pop()  # what ends with a delimiter has no empty part after it
    with tempfile.TemporaryDirectory() as folder:
        Note.seen.clear()
        asyncio.run(run(Path(folder), [{"type": "split", "mode": "lines"}, NOTE], text))
    assert expected == bodies()


async def test_elements_can_be_split_again(tmp_path: Path) -> None:
    cells = {**SPLIT, "name": "cells"}
    await run(tmp_path, [SPLIT, cells, NOTE], [[1, 2], [], [3]])
    assert [1, 2, 3] == sorted(bodies())
    assert 2 == len({seen.vars["groupId"] for seen in Note.seen})


async def test_in_text_only_the_last_part_knows_how_many_there_are(tmp_path: Path) -> None:
    await run(tmp_path, [{"type": "split", "mode": "lines"}, NOTE], "a\nb\nc")
    assert [-1, -1, 3] == [seen.vars["groupSize"] for seen in Note.seen]


@pytest.mark.parametrize(
    ("block", "body", "text"),
    [
        (SPLIT, {"a": 1}, "split items must evaluate to an array, got map"),
        ({"type": "split", "mode": "lines"}, [1], "needs a text as the body, got list"),
    ],
)
async def test_what_cannot_be_split_fails_the_caller(
    tmp_path: Path, block: dict[str, Any], body: Any, text: str
) -> None:
    assert text in str((await run(tmp_path, [block, NOTE], body)).error)


async def test_elements_that_do_not_end_are_cut_off_when_the_service_stops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = load(tmp_path, flows(main=[SPLIT, HANG]))
    await service.start()
    before = asyncio.all_tasks()
    await service.invoke("main", list(range(20)))
    await service.stop(grace=0.01)
    assert before == asyncio.all_tasks()
    assert 8 == Hang.begun == Hang.cancelled
    assert "background work was cut off" in capsys.readouterr().err


async def test_one_trace_id_follows_every_element(tmp_path: Path) -> None:
    lines: list[str] = []
    async with load(tmp_path, flows(main=[SPLIT, NOTE])) as service:
        await service.invoke("main", [1, 2], trace=Trace(lines.append, SystemClock()))
    records = [json.loads(line) for line in lines]
    assert 1 == len({record["traceId"] for record in records})
    assert 3 == sum(record["kind"] == "flow.completed" for record in records)
    assert {"main.split", "main.test-note"} == {r["path"] for r in records if "path" in r}


def around(block: dict[str, Any]) -> list[dict[str, Any]]:
    inner = {"process": [block]}
    return [
        {"type": "if", "condition": "true", "then": inner},
        {"type": "foreach", "items": "[]", "body": inner},
        {"type": "handle-errors", "process": [block], "error": []},
    ]


@pytest.mark.parametrize("outer", around(SPLIT))
def test_a_split_inside_another_block_does_not_load(tmp_path: Path, outer: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="split is allowed in the process list") as caught:
        load(tmp_path, flows(main=[outer]))
    (fault,) = caught.value.faults
    assert fault.position is not None
    assert fault.path.endswith("process[0]")


def test_a_split_in_an_error_chain_does_not_load(tmp_path: Path) -> None:
    document = flows(main=[])
    document["flows"][0]["error"] = [SPLIT]
    with pytest.raises(ConfigError, match="split is allowed in the process list"):
        load(tmp_path, document)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "split mode expression needs items"),
        ({"mode": "delimiter"}, "split mode delimiter needs delimiter"),
        ({"mode": "chunk"}, "split mode chunk needs chunkSize"),
        ({"mode": "lines", "items": "body"}, "split mode lines has no items"),
        ({"items": "body", "chunkSize": 3}, "split mode expression has no chunkSize"),
        ({"mode": "chunk", "chunkSize": 0}, "chunkSize"),
        ({"mode": "delimiter", "delimiter": ""}, "delimiter"),
        ({"items": "body", "onError": "retry"}, "onError"),
        ({"mode": "words"}, "mode"),
    ],
)
def test_what_cannot_work_does_not_load(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        load(tmp_path, flows(main=[{"type": "split", **settings}]))
    assert all(fault.position for fault in caught.value.faults)
