"""Lines for what happens very often."""

from __future__ import annotations

import asyncio
from typing import Any

from flowrt.observe.flood import PERIOD, Flood
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
