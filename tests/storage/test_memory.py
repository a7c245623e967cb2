"""The store in memory."""

from __future__ import annotations

import pytest

from flowrt.storage.memory import MemoryStore
from flowrt.storage.protocol import KeyValue, Lease
from flowrt.testing.store_conformance import StoreConformance
from tests.storage.hands import HandClock


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> KeyValue:
        self.clock = HandClock()
        return MemoryStore(clock=self.clock)

    def another(self, store: KeyValue) -> KeyValue:
        return store

    async def advance(self, store: KeyValue, seconds: float) -> None:
        self.clock.advance(seconds)

    async def take_away(self, store: KeyValue, lease: Lease) -> None:
        await store.close()
        await store.open()
