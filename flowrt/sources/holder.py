"""Being the one of several replicas that does something."""

from __future__ import annotations

from contextlib import AsyncExitStack

from flowrt.errors import LeaseLost, StoreError, ThreadBusy
from flowrt.observe.log import get_logger
from flowrt.storage.lease import hold
from flowrt.storage.protocol import Lease
from flowrt.storage.tiers import Space

_log = get_logger("flowrt.sources")


class Holder:
    """Claims a lease when it is asked for, and then keeps it: one replica stays the one."""

    def __init__(self, space: Space, key: str) -> None:
        self._space = space
        self._key = key
        self._lease: Lease | None = None
        self._held = AsyncExitStack()

    async def holds(self) -> bool:
        """Whether this is the one; claims the lease where nobody has it.

        The store is asked each time: a process that was held up for long enough has lost the lease
        and does not know it yet.
        """
        try:
            return await self._kept() or await self._claimed()
        except StoreError as error:
            # Whether another replica is the one cannot be known.
            _log.error("a lease was not claimed", key=self._key, error=str(error))
            return False

    async def release(self) -> None:
        """Let another replica be the one."""
        self._lease = None
        held, self._held = self._held, AsyncExitStack()
        try:
            await held.aclose()
        except StoreError as error:
            _log.warning("a lease was not released", key=self._key, error=str(error))

    async def _kept(self) -> bool:
        if self._lease is None:
            return False
        try:
            await self._lease.renew()
        except LeaseLost as error:
            _log.warning("a lease was lost", key=self._key, error=str(error))
            await self.release()
            return False
        return True

    async def _claimed(self) -> bool:
        async with AsyncExitStack() as claiming:
            try:
                claim = hold(self._space, self._key, wait=0)
                self._lease = await claiming.enter_async_context(claim)
            except ThreadBusy:
                return False
            self._held = claiming.pop_all()
        return True
