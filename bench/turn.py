"""Milliseconds and kilobytes a turn, by how long the conversation already is."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from bench.measure import document, median, message, report, service
from flowrt.message import Outcome
from flowrt.service import Service

AT = (10, 100, 1_000, 5_000)  # stored messages; a turn stores four
SAMPLE = 40


async def main() -> None:
    """Run turns on one thread and measure around each mark."""
    for run in range(3):
        with service(document()) as made:
            async with made:
                await _one_thread(made, run)


async def _one_thread(made: Service, run: int) -> None:
    done = 0
    milliseconds, kilobytes = {}, {}
    for mark in AT:
        while done < mark // 4:
            await _turn(made)
            done += 1
        times = []
        before = _written()
        for _ in range(SAMPLE):
            began = time.perf_counter()
            await _turn(made)
            times.append((time.perf_counter() - began) * 1e3)
        done += SAMPLE
        milliseconds[mark] = median(times)
        kilobytes[mark] = round((_written() - before) / SAMPLE / 1024, 1)
    report("turn", run=run, ms=milliseconds, kb_written=kilobytes)


async def _turn(made: Service) -> None:
    result = await made.invoke("chat", message())
    assert result.outcome is Outcome.COMPLETED, result.error


def _written() -> int:
    """Bytes this process gave to write calls, pages and log of SQLite alike."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["wchar"])


if __name__ == "__main__":
    os.environ.setdefault("LOG_LEVEL", "error")
    asyncio.run(main())
