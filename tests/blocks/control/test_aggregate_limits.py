"""`aggregate`: groups that take too long, and too many of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flowrt.message import Outcome
from flowrt.service import Service
from flowrt.storage.lease import hold
from flowrt.storage.memory import MemoryStore
from flowrt.storage.tiers import Storage
from tests.blocks.chains import NOTE, Note
from tests.blocks.control.waiting_clock import WaitingClock
from tests.services import flows, load


def group(**settings: Any) -> dict[str, Any]:
    return {"type": "aggregate", "correlation": "body", **settings}


@asynccontextmanager
async def serving(
    folder: Path, clock: WaitingClock, storage: str = "memory:", **settings: Any
) -> AsyncIterator[Service]:
    service = load(folder, flows(main=[group(**settings), NOTE]), storage, clock=clock)
    await service.start(sources=True)
    try:
        yield service
    finally:
        await service.stop()


def told() -> list[tuple[str, int, str]]:
    return [
        (seen.vars["aggregateKey"], seen.vars["aggregateCount"], seen.vars["aggregateReason"])
        for seen in Note.seen
    ]


async def test_a_group_that_takes_too_long_is_released_as_it_is(tmp_path: Path) -> None:
    clock = WaitingClock()
    async with serving(tmp_path, clock, completionTimeout="10s") as service:
        await service.invoke("main", "a")
        await clock.pass_time(7)
        await service.invoke("main", "a")
        await service.invoke("main", "b")
        assert [] == Note.seen
        await clock.pass_time(6, lambda: Note.seen)
        assert [("a", 2, "timeout")] == told()
        await clock.pass_time(10, lambda: len(Note.seen) == 2)
        assert ("b", 1, "timeout") == told()[1]


async def test_the_timeout_can_count_from_the_newest_message(tmp_path: Path) -> None:
    clock = WaitingClock()
    async with serving(tmp_path, clock, completionTimeout="10s", timeoutFrom="last") as service:
        for _ in range(4):
            await service.invoke("main", "a")
            await clock.pass_time(7)
        assert [] == Note.seen
        await clock.pass_time(6, lambda: Note.seen)
    assert [("a", 4, "timeout")] == told()


async def test_a_group_of_a_service_that_was_down_is_released_by_the_next(tmp_path: Path) -> None:
    storage, clock = f"sqlite:{tmp_path}/s.db", WaitingClock()
    async with serving(tmp_path, clock, storage, completionTimeout="10s") as service:
        await service.invoke("main", "a")
    clock.advance(60)
    async with serving(tmp_path, clock, storage, completionTimeout="10s"):
        await clock.pass_time(5, lambda: Note.seen)
    assert [("a", 1, "timeout")] == told()


async def test_only_the_holder_of_the_lease_looks(tmp_path: Path) -> None:
    clock = WaitingClock()
    async with serving(tmp_path, clock, completionTimeout="10s", storeKey="orders") as service:
        await service.invoke("main", "a")
        async with hold(service.storage.space("system"), "aggregate_orders"):
            await clock.pass_time(30)
            assert [] == Note.seen
        await clock.pass_time(6, lambda: Note.seen)


async def test_two_replicas_release_a_group_once(tmp_path: Path) -> None:
    storage, clock = f"sqlite:{tmp_path}/s.db", WaitingClock()
    async with (
        serving(tmp_path, clock, storage, completionTimeout="10s") as first,
        serving(tmp_path, clock, storage, completionTimeout="10s"),
    ):
        await first.invoke("main", "a")
        await clock.pass_time(30, lambda: Note.seen)
        await clock.pass_time(10)
    assert [("a", 1, "timeout")] == told()


async def test_an_invoke_releases_nothing_late(tmp_path: Path) -> None:
    clock = WaitingClock()
    document = flows(main=[group(completionTimeout="10s"), NOTE])
    async with load(tmp_path, document, clock=clock) as service:
        await service.invoke("main", "a")
        await clock.pass_time(60)
    assert [] == Note.seen


async def test_a_group_with_a_timeout_does_not_stay_for_ever(tmp_path: Path) -> None:
    """A group whose flow is gone is released by nobody."""
    clock = WaitingClock()
    service = load(tmp_path, flows(main=[group(completionTimeout="10s")]), clock=clock)
    service.storage = Storage("test", MemoryStore(clock=clock), MemoryStore())
    async with service:
        await service.invoke("main", "a")
        space = service.storage.space("system")
        assert 1 == len((await space.scan()).keys)
        clock.advance(86400 + 11)
        assert [] == (await space.scan()).keys


async def test_more_groups_than_may_be_open_fail_their_first_message(tmp_path: Path) -> None:
    async with load(tmp_path, flows(main=[group(maxGroups=2)])) as service:
        outcomes = [(await service.invoke("main", key)).outcome for key in "abcab"]
        error = (await service.invoke("main", "c")).error
    assert [Outcome.STOPPED, Outcome.STOPPED, Outcome.FAILED] == outcomes[:3]
    assert {Outcome.STOPPED} == set(outcomes[3:])
    assert "aggregate has 2 open groups" in str(error)


async def test_more_groups_than_may_be_open_can_be_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with load(tmp_path, flows(main=[group(maxGroups=1, onOverflow="drop")])) as service:
        outcomes = [(await service.invoke("main", key)).outcome for key in "ab"]
    assert [Outcome.STOPPED, Outcome.DROPPED] == outcomes
    assert "a message was dropped: too many groups" in capsys.readouterr().err


async def test_more_groups_than_may_be_open_can_push_out_the_oldest(tmp_path: Path) -> None:
    clock = WaitingClock()
    async with serving(tmp_path, clock, maxGroups=2, onOverflow="complete") as service:
        for key in "zabz":
            clock.advance(1)
            await service.invoke("main", key)
    assert [("z", 1, "overflow"), ("a", 1, "overflow")] == told()
