"""Holding a key while something is done with it: one holder at a time, in all processes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from flowrt.errors import LeaseLost, StoreError, ThreadBusy
from flowrt.observe.log import get_logger
from flowrt.storage.protocol import Lease
from flowrt.storage.tiers import Space

TTL = 15.0
"""Seconds a lease lasts without renewal: how long a killed process may hold one in Redis."""

_FIRST_WAIT, _LONGEST_WAIT = 0.01, 0.25

_log = get_logger("flowrt.storage")


@asynccontextmanager
async def hold(
    space: Space,
    key: str,
    *,
    ttl: float = TTL,
    wait: float | None = None,
    on_lost: Callable[[], object] | None = None,
) -> AsyncIterator[Lease]:
    """Hold `key`, renewing it every third of `ttl` seconds, and release it on the way out.

    Waits its turn: runs of this process in the order they came, those of others by asking again.
    `wait` 0 raises `ThreadBusy` at once where somebody holds it; None waits for ever. `on_lost` is
    called from the event loop where a renewal finds the lease gone.
    """
    async with space.queue(key) as lock:
        if wait == 0 and lock.locked():
            raise _busy(key)
        async with lock:
            lease = await _acquire(space, key, ttl, wait)
            renewal = _Renewal(lease, ttl, on_lost)
            try:
                yield lease
            finally:
                renewal.stop()
                await lease.release()


async def _acquire(space: Space, key: str, ttl: float, wait: float | None) -> Lease:
    pause = _FIRST_WAIT
    while (lease := await space.try_lease(key, ttl=ttl)) is None:
        if wait == 0:
            raise _busy(key)
        # Jitter, so that replicas that wait for one thread do not ask in step.
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
        pause = min(_LONGEST_WAIT, pause * 1.5)
    return lease


def _busy(key: str) -> ThreadBusy:
    name = key.partition("/")[2] or key
    return ThreadBusy(f"thread {name!r} is busy with another message; try again when it is done")


class _Renewal:
    """Renews a lease as long as it is held; short runs end before the first time."""

    def __init__(self, lease: Lease, ttl: float, on_lost: Callable[[], object] | None) -> None:
        self._lease = lease
        self._every = ttl / 3
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(self._every, self._start)

    def stop(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _start(self) -> None:
        self._task = self._loop.create_task(self._renew())

    async def _renew(self) -> None:
        try:
            await self._lease.renew()
        except LeaseLost as error:
            _log.error("a lease was lost", key=self._lease.key, error=str(error))
            if self._on_lost is not None:
                self._on_lost()
            return
        except StoreError as error:
            # The store may be back before the lease runs out.
            _log.warning("a lease was not renewed", key=self._lease.key, error=str(error))
        self._timer = self._loop.call_later(self._every, self._start)
