"""What every store has to pass; for pytest, and for stores of others too.

Subclass `StoreConformance`, override the fixture `store` and the hooks, and run it::

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def store(self, tmp_path: Path) -> KeyValue:
            return MyStore(tmp_path / "data", clock=self.clock)

        def another(self, store: KeyValue) -> KeyValue: ...
        async def advance(self, store: KeyValue, seconds: float) -> None: ...
        async def take_away(self, store: KeyValue, lease: Lease) -> None: ...

Needs pytest and nothing else: each test runs an event loop of its own.
"""

from __future__ import annotations

import pytest

# Without this a failed assert in a package that is not a test file says only AssertionError.
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{part}"
        for part in ("concurrency", "leases", "logs", "scans", "suite", "values")
    )
)

from flowrt.testing.store_conformance.concurrency import ConcurrencyConformance  # noqa: E402
from flowrt.testing.store_conformance.leases import LeaseConformance  # noqa: E402
from flowrt.testing.store_conformance.logs import LogConformance  # noqa: E402
from flowrt.testing.store_conformance.scans import ScanConformance  # noqa: E402
from flowrt.testing.store_conformance.values import ValueConformance  # noqa: E402

__all__ = ["StoreConformance"]


class StoreConformance(
    ValueConformance, LogConformance, ScanConformance, ConcurrencyConformance, LeaseConformance
):
    """Everything `flowrt.storage.protocol` promises, as tests. See `Suite` for what to override."""
