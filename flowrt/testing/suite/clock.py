"""The clock of a case: stands still where the suite says what time it is, and can be moved on."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any


class CaseClock:
    """Real time until `set` or `advance` is called; then `now` stands where it was put.

    Durations always run, so that a `delay` of a stand-in takes as long as it says. What sleeps is
    woken when the clock is moved beyond its time.
    """

    def __init__(self) -> None:
        self._now: datetime | None = None
        self._ahead = 0.0
        self._moved = asyncio.Event()
        self._asleep: dict[asyncio.Task[Any], float] = {}
        self._woken: set[asyncio.Task[Any]] = set()
        self._settled = asyncio.Event()
        self._settled.set()

    def now(self) -> datetime:
        return self._now or datetime.now(UTC) + timedelta(seconds=self._ahead)

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        until = self._asleep[task] = self.monotonic() + seconds
        self._at_rest(task)
        try:
            await self._sleep_until(until)
        finally:
            self._asleep.pop(task, None)

    async def _sleep_until(self, until: float) -> None:
        while (left := until - self.monotonic()) > 0:
            moved = self._moved
            try:
                async with asyncio.timeout(left):
                    await moved.wait()
            except TimeoutError:
                return

    async def settle(self) -> None:
        """Wait until whatever a move of the clock has woken sleeps again, or has ended.

        A turn after `after: 10m` must find what those minutes have brought about.
        """
        await self._settled.wait()

    def _at_rest(self, task: asyncio.Task[Any]) -> None:
        self._woken.discard(task)
        if not self._woken:
            self._settled.set()

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
        for task, until in self._asleep.items():
            if until <= self.monotonic():
                self._woken.add(task)
                task.add_done_callback(self._at_rest)
                self._settled.clear()
        self._moved.set()
        self._moved = asyncio.Event()
