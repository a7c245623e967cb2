"""Several processes on one store."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from flowrt.storage.tiers import parse_storage_url

APPEND = """
import asyncio, sys
from flowrt.storage.tiers import parse_storage_url
async def main():
    store = parse_storage_url(sys.argv[1])
    await store.open()
    for at in range(60):
        mark = f"{sys.argv[2]} {at} ".encode()
        await store.append("s", "log", [mark + b"?" * 1000, mark + b"!"], head=at)
    await store.close()
asyncio.run(main())
"""


def append_from_processes(url: str) -> None:
    """Three processes append pairs to one log; all are there, together, and in their order."""
    writers = [subprocess.Popen([sys.executable, "-c", APPEND, url, name]) for name in "abc"]
    assert [0, 0, 0] == [writer.wait(60) for writer in writers]

    async def read() -> tuple[int, list[bytes]]:
        store = parse_storage_url(url)
        await store.open()
        log = await store.read_log("s", "log")
        await store.close()
        assert log is not None
        return log.version, log.entries

    version, entries = asyncio.run(read())
    assert (180, 360) == (version, len(entries))
    pairs = [(entries[at], entries[at + 1]) for at in range(0, 360, 2)]
    for name in "abc":
        marks = [f"{name} {at} ".encode() for at in range(60)]
        own = [pair for pair in pairs if pair[0].startswith(name.encode())]
        assert [(mark + b"?" * 1000, mark + b"!") for mark in marks] == own
