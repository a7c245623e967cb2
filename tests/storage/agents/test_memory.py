"""The record of agents in memory."""

from __future__ import annotations

import pytest

from flowrt.storage.memory import MemoryStore
from flowrt.testing.agent_memory_conformance import AgentMemoryConformance, Keeping


class TestMemoryAgentStore(AgentMemoryConformance):
    @pytest.fixture
    def store(self) -> Keeping:
        return MemoryStore()

    def another(self, store: Keeping) -> Keeping:
        return store
