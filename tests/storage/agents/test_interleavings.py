"""Two replicas work on one record at once, against a model of it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings

from flowrt.storage.memory import MemoryStore
from flowrt.storage.redis import RedisStore
from flowrt.storage.sqlite import SqliteStore
from tests.storage.agents.interleaving import Step, play, steps

few = settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@few
@given(history=steps)
def test_whatever_is_done_at_once_in_redis_happens_in_some_order(
    quick_redis_url: str, history: list[Step]
) -> None:
    asyncio.run(play(history, RedisStore(quick_redis_url), RedisStore(quick_redis_url)))


@few
@given(history=steps)
def test_whatever_is_done_at_once_in_sqlite_happens_in_some_order(
    tmp_path_factory: pytest.TempPathFactory, history: list[Step]
) -> None:
    path = tmp_path_factory.getbasetemp() / "interleavings.db"
    asyncio.run(play(history, SqliteStore(path), SqliteStore(path)))


@few
@given(history=steps)
def test_whatever_is_done_at_once_in_memory_happens_in_some_order(history: list[Step]) -> None:
    store = MemoryStore()
    asyncio.run(play(history, store, store))
