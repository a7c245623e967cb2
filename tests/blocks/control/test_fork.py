"""`fork`: branches side by side."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.message import Outcome
from tests.blocks.chains import (
    BROKEN,
    DROP,
    HANG,
    MEET,
    NOTE,
    STOP,
    Chain,
    Hang,
    Meet,
    Note,
    message,
    payload,
    run,
    variable,
)
from tests.services import flows, load


def fork(*branches: Chain) -> dict[str, Any]:
    return {"type": "fork", "branches": [{"process": chain} for chain in branches]}


async def test_the_message_passes_unchanged_whatever_the_branches_make_of_it(
    tmp_path: Path,
) -> None:
    chain = [fork([payload('"a"'), variable("x", "1")], [DROP], [NOTE])]
    found = await message(tmp_path, chain, {"n": 1}, mine=2)
    assert ({"n": 1}, {"mine": 2}) == (found.body, dict(found.vars))
    assert [{"n": 1}] == [seen.body for seen in Note.seen]


async def test_branches_run_at_the_same_time(tmp_path: Path) -> None:
    await message(tmp_path, [fork(*[[MEET]] * 5)])
    assert 5 == Meet.most


@pytest.mark.parametrize(("pool", "most"), [(1, 1), (3, 3), (None, 8)])
async def test_no_more_run_at_a_time_than_the_flow_allows(
    tmp_path: Path, pool: int | None, most: int
) -> None:
    await run(tmp_path, [fork(*[[MEET]] * 20)], flow={"pool": pool} if pool else None)
    assert most == Meet.most


async def test_a_fork_within_a_fork_does_not_wait_for_its_own_place(tmp_path: Path) -> None:
    chain = [fork([fork([MEET], [MEET])], [fork([MEET], [MEET])])]
    assert Outcome.COMPLETED == (await run(tmp_path, chain, flow={"pool": 1})).outcome


async def test_the_first_error_cancels_the_other_branches_and_waits_for_their_end(
    tmp_path: Path,
) -> None:
    branches = [{"process": [HANG]}, {"name": "bad", "process": [MEET, BROKEN]}]
    async with load(
        tmp_path, flows(main=[{"type": "fork", "name": "both", "branches": branches}])
    ) as service:
        before = asyncio.all_tasks()
        result = await service.invoke("main")
        assert before == asyncio.all_tasks()
    error = 'block "both": fork branch "bad": block "test-broken": boom'
    assert error == str(result.error)
    assert (1, 1) == (Hang.begun, Hang.cancelled)


async def test_a_branch_without_a_name_fails_under_its_index(tmp_path: Path) -> None:
    assert 'fork branch "1": ' in str((await run(tmp_path, [fork([], [BROKEN])])).error)


async def test_branches_that_wait_for_a_place_do_not_start_after_an_error(tmp_path: Path) -> None:
    await run(tmp_path, [fork([BROKEN], [NOTE], [NOTE])], flow={"pool": 1})
    assert [] == Note.seen


async def test_a_stop_reaches_the_flow_once_all_branches_are_done(tmp_path: Path) -> None:
    result = await run(tmp_path, [fork([STOP], [MEET, NOTE]), payload('"after"')], "before")
    assert Outcome.STOPPED == result.outcome
    assert result.message is not None
    assert ("before", 1) == (result.message.body, len(Note.seen))


async def test_cancelling_the_run_cancels_every_branch(tmp_path: Path) -> None:
    async with load(tmp_path, flows(main=[fork([HANG], [HANG], [HANG])])) as service:
        task = asyncio.create_task(service.invoke("main"))
        while Hang.begun < 3:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert 3 == Hang.cancelled


async def test_an_error_chain_recovers_from_a_branch(tmp_path: Path) -> None:
    guarded = {"type": "handle-errors", "process": [fork([BROKEN])], "error": [payload('"saved"')]}
    assert "saved" == (await message(tmp_path, [guarded])).body


@pytest.mark.parametrize("names", [["a", "a"], ["1", ""]])
def test_two_branches_of_one_name_do_not_load(tmp_path: Path, names: list[str]) -> None:
    branches = [{"name": name, "process": []} for name in names]
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, flows(main=[{"type": "fork", "branches": branches}]))
    (fault,) = caught.value.faults
    assert fault.path.startswith("flows.main.process[0].branches[1]")
    assert fault.position is not None


def test_a_fork_without_branches_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"process\[0\]\.branches"):
        load(tmp_path, flows(main=[fork()]))
