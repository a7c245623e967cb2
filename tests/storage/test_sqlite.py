"""The store in a SQLite file."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowrt.storage.protocol import KeyValue, Lease
from flowrt.storage.sqlite import SqliteStore
from flowrt.testing.store_conformance import StoreConformance
from tests.storage.hands import HandClock


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> KeyValue:
        self.clock = HandClock()
        self.path = tmp_path / "state.db"
        return SqliteStore(self.path, clock=self.clock)

    def another(self, store: KeyValue) -> KeyValue:
        return SqliteStore(self.path, clock=self.clock)

    async def advance(self, store: KeyValue, seconds: float) -> None:
        self.clock.advance(seconds)

    async def take_away(self, store: KeyValue, lease: Lease) -> None:
        self.path.with_name("state.db.lock").unlink()
