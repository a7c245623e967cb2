"""The clock of a case: stands still where the suite says what time it is, and can be moved on."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta


class CaseClock:
    """Real time until `set` or `advance` is called; then `now` stands where it was put.

    Durations always run, so that a `delay` of a stand-in takes as long as it says. What sleeps is
    woken when the clock is moved beyond its time.
    """

    def __init__(self) -> None:
        self._now: datetime | None = None
        self._ahead = 0.0
        self._moved = asyncio.Event()

    def now(self) -> datetime:
        return self._now or datetime.now(UTC) + timedelta(seconds=self._ahead)

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        until = self.monotonic() + seconds
        while True:
            moved = self._moved
            try:
                async with asyncio.timeout(max(0.0, until - self.monotonic())):
                    await moved.wait()
            except TimeoutError:
                return
            if self.monotonic() >= until:
                return

    def set(self, now: datetime) -> None:
        """It is `now`. Time that lies between a time set before and this one has passed."""
        passed = (now - self._now).total_seconds() if self._now is not None else 0.0
        self._now = now
        self._pass(passed)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if self._now is not None:
            self._now += timedelta(seconds=seconds)
        self._pass(seconds)

    def _pass(self, seconds: float) -> None:
        self._ahead += max(0.0, seconds)
        self._moved.set()
        self._moved = asyncio.Event()
