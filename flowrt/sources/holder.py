"""Being the one of several replicas that does something."""

from __future__ import annotations

from contextlib import AsyncExitStack

from flowrt.errors import StoreError, ThreadBusy
from flowrt.observe.log import get_logger
from flowrt.storage.lease import hold
from flowrt.storage.tiers import Space

_log = get_logger("flowrt.sources")


class Holder:
    """Claims a lease when it is asked for, and then keeps it: one replica stays the one."""

    def __init__(self, space: Space, key: str) -> None:
        self._space = space
        self._key = key
        self._held: AsyncExitStack | None = None
        self._lost = False

    async def holds(self) -> bool:
        """Whether this is the one; claims the lease where nobody has it."""
        if self._held is not None and self._lost:
            await self.release()
        if self._held is not None:
            return True
        self._lost = False
        try:
            async with AsyncExitStack() as claiming:
                claim = hold(self._space, self._key, wait=0, on_lost=self._lose)
                await claiming.enter_async_context(claim)
                self._held = claiming.pop_all()
        except ThreadBusy:
            return False
        except StoreError as error:
            # Whether another replica is the one cannot be known.
            _log.error("a lease was not claimed", key=self._key, error=str(error))
            return False
        return True

    async def release(self) -> None:
        """Let another replica be the one."""
        held, self._held = self._held, None
        if held is None:
            return
        try:
            await held.aclose()
        except StoreError as error:
            _log.warning("a lease was not released", key=self._key, error=str(error))

    def _lose(self) -> None:
        self._lost = True
