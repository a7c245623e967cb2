"""Milliseconds and kilobytes a turn, by how long the conversation already is."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path

from bench.measure import document, median, message, report, service
from flowrt.message import Outcome
from flowrt.service import Service
from tests.redis_server import RedisServer

AT = (10, 100, 1_000, 5_000)  # stored messages; a turn stores four
SAMPLE = 40


async def main() -> None:
    """Run turns on one thread and measure around each mark, on SQLite and on Redis."""
    for run in range(3):
        with service(document()) as made:
            async with made:
                await _one_thread(made, "sqlite", run)
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder))
        server.start()
        try:
            for run in range(3):
                content = document()
                content["service"]["name"] = f"bench-{run}"
                with service(content, server.url) as made:
                    async with made:
                        await _one_thread(made, "redis", run)
        finally:
            server.stop()


async def _one_thread(made: Service, store: str, run: int) -> None:
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
    report(
        "turn",
        store=store,
        run=run,
        ms=milliseconds,
        kb_written=kilobytes,
        bytes_stored_a_turn=await _stored(made),
    )


async def _stored(made: Service) -> int:
    """Bytes of one exchange in the store, as its entries."""
    log = await made.storage.space("user").read_log("agent-memory/t")
    assert log is not None
    return sum(len(entry) for entry in log.entries[-4:])


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
