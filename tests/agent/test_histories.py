"""Whatever happens in a conversation, at any budget: no request is refused, the newest question is
in it, and what is stored loads again."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from flowrt.ids import new_id
from tests.agent.histories import History, histories, play


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories)
def test_no_request_is_ever_refused_on_sqlite(history: History) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(history, Path(folder), f"sqlite:{folder}/state.db", "t"))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories)
def test_no_request_is_ever_refused_on_redis(history: History, redis_url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(history, Path(folder), redis_url, new_id()))
