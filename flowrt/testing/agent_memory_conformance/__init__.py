"""What every record of agents has to pass; for pytest, and for stores of others too.

Subclass `AgentMemoryConformance`, override the fixture `store` and the hook, and run it::

    class TestMyRecord(AgentMemoryConformance):
        @pytest.fixture
        def store(self, tmp_path: Path) -> Keeping:
            return MyStore(tmp_path / "data")

        def another(self, store: Keeping) -> Keeping: ...

The store under test is a key-value store with the method `agents`. Needs pytest and nothing else:
each test runs an event loop of its own.
"""

from __future__ import annotations

import pytest

# Without this a failed assert in a package that is not a test file says only AssertionError.
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{part}"
        for part in (
            "archives",
            "concurrency",
            "facts",
            "forgetting",
            "ids",
            "pages",
            "parts",
            "suite",
            "threads",
            "turns",
            "vectors",
            "versions",
        )
    )
)

from flowrt.testing.agent_memory_conformance.archives import ArchiveConformance  # noqa: E402
from flowrt.testing.agent_memory_conformance.concurrency import ConcurrencyConformance  # noqa: E402
from flowrt.testing.agent_memory_conformance.facts import FactConformance  # noqa: E402
from flowrt.testing.agent_memory_conformance.forgetting import ForgettingConformance  # noqa: E402
from flowrt.testing.agent_memory_conformance.ids import IdConformance  # noqa: E402
from flowrt.testing.agent_memory_conformance.pages import PageConformance  # noqa: E402
from flowrt.testing.agent_memory_conformance.parts import PartConformance  # noqa: E402
from flowrt.testing.agent_memory_conformance.suite import Keeping  # noqa: E402
from flowrt.testing.agent_memory_conformance.threads import ThreadConformance  # noqa: E402
from flowrt.testing.agent_memory_conformance.turns import TurnConformance  # noqa: E402
from flowrt.testing.agent_memory_conformance.vectors import VectorConformance  # noqa: E402
from flowrt.testing.agent_memory_conformance.versions import VersionConformance  # noqa: E402

__all__ = ["AgentMemoryConformance", "Keeping"]


class AgentMemoryConformance(
    TurnConformance,
    ThreadConformance,
    FactConformance,
    VectorConformance,
    IdConformance,
    PageConformance,
    PartConformance,
    VersionConformance,
    ForgettingConformance,
    ArchiveConformance,
    ConcurrencyConformance,
):
    """Everything `flowrt.storage.agents.protocol` promises, as tests. `Suite` has the hooks."""
