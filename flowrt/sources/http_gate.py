"""How many requests of a flow are worked on, and how many may wait."""

from __future__ import annotations

import asyncio
from types import TracebackType

from flowrt.observe.flood import Flood
from flowrt.observe.log import Logger


class Gate:
    """`workers` places to work and `buffer` places to wait; whoever finds neither is sent away.

    Each of those is counted in a log line.
    """

    def __init__(self, workers: int, buffer: int, log: Logger) -> None:
        self._workers = workers
        self._most = workers + buffer
        self._inside = 0
        self._places = asyncio.Semaphore(workers)
        self._sent_away = Flood(log, "requests were answered with 503: the flow is full")

    @property
    def waiting(self) -> int:
        """How many wait for a place to work."""
        return max(0, self._inside - self._workers)

    def full(self) -> bool:
        """Whether there is no place at all; the one who asks is sent away and counted."""
        if self._inside < self._most:
            return False
        self._sent_away.note(workers=self._workers, buffer=self._most - self._workers)
        return True

    def enter(self) -> None:
        """Take a place to wait."""
        self._inside += 1

    def leave(self) -> None:
        """Give up what `enter` took."""
        self._inside -= 1

    def close(self) -> None:
        """Tell what is not told yet."""
        self._sent_away.flush()

    async def __aenter__(self) -> None:
        await self._places.acquire()

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._places.release()
