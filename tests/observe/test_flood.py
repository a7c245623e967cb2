"""Lines for what happens very often."""

from __future__ import annotations

import asyncio
from typing import Any

from flowrt.observe.flood import MOST, PERIOD, Flood, Trickle
from flowrt.observe.log import capture_logs, get_logger


async def test_ten_thousand_events_are_a_few_lines_that_count_them_all() -> None:
    lines: list[dict[str, Any]] = []
    capture_logs(lines.append)
    flood = Flood(get_logger("test"), "refused")
    for number in range(10_000):
        flood.note(number=number)
    assert [1] == [line["count"] for line in lines]
    flood.flush()
    assert [1, 9_999] == [line["count"] for line in lines]
    assert {"level": "warning", "logger": "test", "event": "refused"}.items() <= lines[1].items()
    assert 9_999 == lines[1]["number"]


async def test_what_comes_within_a_second_is_told_at_its_end() -> None:
    lines: list[dict[str, Any]] = []
    told = asyncio.Event()

    def sink(line: dict[str, Any]) -> None:
        lines.append(line)
        if len(lines) == 2:
            told.set()

    capture_logs(sink)
    flood = Flood(get_logger("test"), "refused")
    for _ in range(3):
        flood.note()
    async with asyncio.timeout(PERIOD * 10):
        await told.wait()
    assert [1, 2] == [line["count"] for line in lines]
    flood.flush()
    assert 2 == len(lines)


async def test_few_lines_are_written_in_full_and_many_are_counted_by_their_kind() -> None:
    lines: list[dict[str, Any]] = []
    capture_logs(lines.append)
    trickle = Trickle(get_logger("test"))
    for number in range(1000):
        trickle.error("failed", number=number)
    trickle.warning("the second kind")
    assert [*range(MOST)] == [line["number"] for line in lines if line["event"] == "failed"]
    assert "the second kind" == lines[-1]["event"]
    trickle.flush()
    assert {"of": "failed", "count": 1000 - MOST}.items() <= lines[-1].items()
    trickle.error("failed", number=-1)
    assert -1 == lines[-1]["number"]


def test_a_service_that_is_started_in_another_event_loop_writes_again() -> None:
    """A loop that has ended rings no timer any more."""
    lines: list[dict[str, Any]] = []
    trickle = Trickle(get_logger("test"))

    async def fail(later: float) -> None:
        capture_logs(lines.append)
        loop = asyncio.get_running_loop()
        now = loop.time() + later
        loop.time = lambda: now  # type: ignore[method-assign]
        for _ in range(MOST + 1):
            trickle.error("failed")
        trickle_timer_rings = loop.create_future()
        loop.call_at(now + 2 * PERIOD, trickle_timer_rings.set_result, None)
        if later:
            now += 3 * PERIOD
            await trickle_timer_rings

    asyncio.run(fail(0.0))
    asyncio.run(fail(3 * PERIOD))
    assert "more log lines of a kind were left out" == lines[-1]["event"]
    assert MOST + 2 == lines[-1]["count"]
