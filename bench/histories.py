"""5,000 random conversations, at every kind of budget: no request is ever refused."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from bench.measure import report
from tests.agent.histories import History, histories, play

EXAMPLES = 5_000


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories)
def conversations(history: History) -> None:
    """One conversation, on a SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(history, Path(folder), f"sqlite:{folder}/state.db", "t"))


if __name__ == "__main__":
    os.environ |= {"LOG_LEVEL": "error", "FLOWRT_STRICT_REQUESTS": "1"}
    began = time.perf_counter()
    conversations()
    report("histories", examples=EXAMPLES, seconds=round(time.perf_counter() - began, 1))
