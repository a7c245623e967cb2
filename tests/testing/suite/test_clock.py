"""The clock of a case: what waits for a time is done when that time has come."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from flowrt.testing.suite.clock import CaseClock


async def started(clock: CaseClock, seconds: float, done: list[float]) -> asyncio.Task[None]:
    """A task that notes each time that `seconds` have passed."""

    async def tick() -> None:
        while True:
            await clock.sleep(seconds)
            for _ in range(20):  # work that gives way to others again and again
                await asyncio.sleep(0)
            done.append(seconds)

    task = asyncio.create_task(tick())
    await asyncio.sleep(0)
    return task


async def test_what_a_move_wakes_is_done_when_it_has_settled() -> None:
    clock = CaseClock()
    done: list[float] = []
    tasks = [await started(clock, seconds, done) for seconds in (60, 600, 6000)]
    clock.advance(600)
    await clock.settle()
    assert [60, 600] == sorted(done)
    clock.advance(1)
    await clock.settle()
    assert 2 == len(done)
    for task in tasks:
        task.cancel()


async def test_a_time_that_is_set_wakes_what_waits_for_it() -> None:
    clock = CaseClock()
    done: list[float] = []
    clock.set(datetime(2026, 1, 2, 3, 0, tzinfo=UTC))
    task = await started(clock, 60, done)
    clock.set(datetime(2026, 1, 2, 3, 1, tzinfo=UTC))
    await clock.settle()
    assert [60] == done
    task.cancel()


async def test_what_is_cancelled_or_ends_holds_nobody_up() -> None:
    clock = CaseClock()
    done: list[float] = []
    cancelled = await started(clock, 60, done)
    ending = asyncio.create_task(clock.sleep(60))
    await asyncio.sleep(0)
    clock.advance(60)
    cancelled.cancel()
    await clock.settle()
    await ending
    assert [] == done
