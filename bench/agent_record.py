"""5,000 histories of two replicas on one record and 5,000 crashes, on SQLite and on Redis.

Not among those of `make bench`: it takes more than half an hour.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from bench.measure import report
from flowrt.storage.tiers import parse_storage_url
from tests.redis_server import RedisServer
from tests.storage.agents import crashing
from tests.storage.agents.interleaving import Step, play, steps

HISTORIES = CRASHES = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000


def interleavings(url: str) -> None:
    """Whatever is done at once happens in some order."""

    @settings(max_examples=HISTORIES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(history=steps)
    def check(history: list[Step]) -> None:
        asyncio.run(play(history, parse_storage_url(url), parse_storage_url(url)))

    check()


def crashes(url: str) -> None:
    """Nothing that was acknowledged is lost."""
    crashing.main(url, 0, CRASHES)


def measured(work: Callable[[str], None], url: str, count: int) -> None:
    """Do it and say how long it took."""
    began = time.perf_counter()
    work(url)
    seconds = round(time.perf_counter() - began, 1)
    store = url.partition(":")[0]
    report("agent_record", what=work.__name__, store=store, examples=count, seconds=seconds)


if __name__ == "__main__":
    os.environ["LOG_LEVEL"] = "error"
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder), appendonly="no", save="3600 1000000000")
        server.start()
        for url in (f"sqlite:{folder}/state.db", server.url):
            measured(interleavings, url, HISTORIES)
            measured(crashes, url, CRASHES)
        server.stop()
