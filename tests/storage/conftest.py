"""The three stores, for tests of what is built on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flowrt.ids import new_id
from flowrt.storage.memory import MemoryStore
from flowrt.storage.tiers import Storage, parse_storage_url


@pytest.fixture(params=["memory", "sqlite", "redis"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Storage]:
    """Tiers on one store; each call makes them as another process would."""
    service = f"test {new_id()}"
    if request.param == "memory":
        store = MemoryStore()
        return lambda: Storage(service, store, MemoryStore())
    url = f"sqlite:{tmp_path}/state.db"
    if request.param == "redis":
        url = request.getfixturevalue("redis_url")
    return lambda: Storage(service, parse_storage_url(url), MemoryStore())
