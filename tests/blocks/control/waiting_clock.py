"""A clock whose sleepers wait until a test moves it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.storage.hands import HandClock


class WaitingClock(HandClock):
    """Stands still; `pass_time` moves it on and lets those whose time has come do their work."""

    def __init__(self) -> None:
        super().__init__()
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    @property
    def asleep(self) -> int:
        """How many sleep; one that was cancelled counts until its time has come."""
        return len(self._sleepers)

    async def sleep(self, seconds: float) -> None:
        event = asyncio.Event()
        self._sleepers.append((self.monotonic() + seconds, event))
        await event.wait()

    async def pass_time(self, seconds: float, until: Callable[[], object] = lambda: True) -> None:
        """Move on by `seconds`, a quarter of a second at a time, until `until` holds."""
        end = self.monotonic() + seconds
        while self.monotonic() < end:
            self.advance(0.25)
            for entry in [entry for entry in self._sleepers if entry[0] <= self.monotonic()]:
                self._sleepers.remove(entry)
                entry[1].set()
            for _ in range(20):
                await asyncio.sleep(0)
        async with asyncio.timeout(5):
            while not until():
                await asyncio.sleep(0)
