"""Time, injected: whatever waits or stamps asks a `Clock`, so that a test never sleeps."""

from __future__ import annotations

import asyncio
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the runtime knows of time."""

    def now(self) -> datetime:
        """The wall-clock time, in UTC. For show only: order comes from sequences."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards. For durations and deadlines."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait `seconds`; 0 lets other tasks run."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_clock: ContextVar[Clock] = ContextVar("clock", default=SystemClock())  # noqa: B039 - has no state


def context_clock() -> Clock:
    """The clock of what has no service at hand, such as the `now` of expressions."""
    return _clock.get()


def use_clock(clock: Clock) -> None:
    """Make `clock` the one of this context and of every task started from it. For tests."""
    _clock.set(clock)
