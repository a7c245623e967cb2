"""5,000 histories of two replicas on one record and 5,000 crashes, on SQLite and on Redis.

Not among those of `make bench`: it takes about ten minutes on two cores.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings

from bench.measure import report
from flowrt.storage.tiers import parse_storage_url
from tests.redis_server import RedisServer
from tests.storage.agents import crashing
from tests.storage.agents.interleaving import Step, play, steps

EXAMPLES = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
FILE_EXAMPLES = 250
"""Examples on one SQLite file: each removal rewrites it, so the last of 5,000 took ten times as
long as the first."""


def interleavings(url: str, first: int, examples: int) -> None:
    """Whatever is done at once happens in some order."""

    @seed(first)
    @settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(history=steps)
    def check(history: list[Step]) -> None:
        asyncio.run(play(history, parse_storage_url(url), parse_storage_url(url)))

    check()


def repeat(work: Callable[[str, int, int], None], url: str) -> dict[str, float]:
    """Do all examples; seconds that went by, and of CPU time without that of the Redis."""
    os.environ["LOG_LEVEL"] = "error"
    began = time.perf_counter()
    for first in range(0, EXAMPLES, FILE_EXAMPLES):
        with tempfile.TemporaryDirectory() as folder:
            store = f"sqlite:{folder}/state.db" if url == "sqlite" else url
            work(store, first, min(FILE_EXAMPLES, EXAMPLES - first))
    cpu = sum(os.times()[:4])
    return {"seconds": round(time.perf_counter() - began, 1), "cpu": round(cpu, 1)}


def main() -> None:
    """Each kind on each store in a process of its own, two at a time."""
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder), appendonly="no", save="3600 1000000000")
        server.start()
        # Not forked: a crash is a fork of its process, which must have opened no store.
        fresh = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=fresh, max_tasks_per_child=1) as pool:
            parts = {
                pool.submit(repeat, work, url): (work.__name__, url.partition(":")[0])
                for work, url in product((interleavings, crashing.crashes), ("sqlite", server.url))
            }
            for part in as_completed(parts):
                what, store = parts[part]
                figures = part.result()
                report("agent_record", what=what, store=store, examples=EXAMPLES, **figures)
        server.stop()


if __name__ == "__main__":
    main()
