"""The record of agents in a SQLite file."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowrt.storage.sqlite import SqliteStore
from flowrt.testing.agent_memory_conformance import AgentMemoryConformance, Keeping


class TestSqliteAgentStore(AgentMemoryConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Keeping:
        self.path = tmp_path / "state.db"
        return SqliteStore(self.path)

    def another(self, store: Keeping) -> Keeping:
        return SqliteStore(self.path)
