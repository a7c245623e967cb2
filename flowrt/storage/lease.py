"""Holding a key while something is done with it: one holder at a time, in all processes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from flowrt.errors import LeaseLost, StoreError, ThreadBusy
from flowrt.observe.log import get_logger
from flowrt.storage.protocol import Lease
from flowrt.storage.tiers import Space, Turns

TTL = 15.0
"""Seconds a lease lasts without renewal: how long a killed process may hold one in Redis."""

_FIRST_WAIT, _LONGEST_WAIT = 0.01, 0.2

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
    `wait` is how many seconds: None for ever, 0 not at all; then `ThreadBusy`. `on_lost` is called
    once, from the event loop, where the lease is gone: taken away, or not renewed in time.
    """
    async with space.turns(key) as turns:
        lease = await _acquire(space, key, ttl, wait, turns)
        try:
            renewal = _Renewal(lease, ttl, on_lost)
            try:
                yield lease
            finally:
                renewal.stop()
                await lease.release()
        finally:
            turns.lock.release()


async def _acquire(space: Space, key: str, ttl: float, wait: float | None, turns: Turns) -> Lease:
    """The lease, with this process's turn taken."""
    if wait is not None and wait <= 0:
        # Those before us hold the lock or are about to: to wait for it would be to wait for them.
        if turns.waiting > 1:
            raise _busy(key)
        return await _claim(space, key, ttl, turns.lock, once=True)
    try:
        async with asyncio.timeout(wait):
            return await _claim(space, key, ttl, turns.lock, once=False)
    except TimeoutError:
        raise _busy(key) from None


async def _claim(space: Space, key: str, ttl: float, lock: asyncio.Lock, *, once: bool) -> Lease:
    await lock.acquire()
    try:
        pause = _FIRST_WAIT
        while (lease := await space.try_lease(key, ttl=ttl)) is None:
            if once:
                raise _busy(key)
            # Jitter, so that replicas that wait for one thread do not ask in step.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
            pause = min(_LONGEST_WAIT, pause * 1.5)
    except BaseException:
        lock.release()
        raise
    return lease


def _busy(key: str) -> ThreadBusy:
    name = key.partition("/")[2] or key
    return ThreadBusy(f"thread {name!r} is busy with another message; try again when it is done")


class _Renewal:
    """Renews a lease as long as it is held; short runs end before the first time.

    Timed by the event loop and not by a clock that a test may stop: the store's lease runs out in
    real time.
    """

    def __init__(self, lease: Lease, ttl: float, on_lost: Callable[[], object] | None) -> None:
        self._lease = lease
        self._ttl = ttl
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + ttl
        self._task: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(ttl / 3, self._start)

    def stop(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _start(self) -> None:
        self._task = self._loop.create_task(self._renew(), name=f"renew {self._lease.key!r}")

    async def _renew(self) -> None:
        asked = self._loop.time()
        try:
            await self._lease.renew()
        except LeaseLost as error:
            self._lose(error)
            return
        except StoreError as error:
            if self._loop.time() >= self._until:
                self._lose(error)
                return
            # The store may be back before the lease runs out.
            _log.warning("a lease was not renewed", key=self._lease.key, error=str(error))
        else:
            # From before the answer: the store counts from when it was asked, at the earliest.
            self._until = asked + self._ttl
        self._timer = self._loop.call_later(self._ttl / 3, self._start)

    def _lose(self, error: StoreError) -> None:
        _log.error("a lease was lost", key=self._lease.key, error=str(error))
        if self._on_lost is not None:
            self._on_lost()
