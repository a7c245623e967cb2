"""The log lines of what had to go from a bounded memory."""

from __future__ import annotations

from flowrt.clock import Clock
from flowrt.observe.log import get_logger

_QUIET_SECONDS = 60.0

_log = get_logger("flowrt.storage")


class Evictions:
    """Counts what goes, and says so at most once a minute."""

    def __init__(self, text: str, max_bytes: int | None, clock: Clock) -> None:
        self._text = text
        self._max_bytes = max_bytes
        self._clock = clock
        self._count = 0
        self._quiet_until = float("-inf")

    def add(self, count: int) -> None:
        """Note that `count` went."""
        self._count += count
        if count and self._clock.monotonic() >= self._quiet_until:
            self._quiet_until = self._clock.monotonic() + _QUIET_SECONDS
            self.report()

    def report(self) -> None:
        """Say what was not said yet."""
        count, self._count = self._count, 0
        if count:
            _log.warning(self._text, evicted=count, maxBytes=self._max_bytes)
