"""A lease in Redis: a key with a random token and a lifetime."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from flowrt.errors import LeaseLost, StoreError
from flowrt.ids import new_id
from flowrt.observe.log import get_logger

Script = Callable[[str, list[bytes], list[Any]], Awaitable[Any]]
"""Runs a script by name on keys and arguments, a second time where the connection broke."""

_log = get_logger("flowrt.storage")


class RedisLease:
    """Held while the key carries our token; a killed holder's runs out after its lifetime."""

    def __init__(
        self,
        script: Script,
        name: bytes,
        key: str,
        ttl: float,
        on_lost: Callable[[], None] | None,
        releasing: set[asyncio.Task[None]],
    ) -> None:
        self.key = key
        self._script = script
        self._name = name
        self._token = new_id()
        self._milliseconds = max(1, round(ttl * 1000))
        self._on_lost = on_lost
        self._releasing = releasing
        self._released = False

    async def claim(self) -> bool:
        """Take the key unless somebody has it. Cancelled or failed, it leaves nothing held."""
        claiming = asyncio.ensure_future(self._ask("claim", self._token, self._milliseconds))
        try:
            return bool(await asyncio.shield(claiming))
        except asyncio.CancelledError:
            # Cut off on its way, the claim could overtake the release that follows it.
            await asyncio.wait([self._soon(self._undo(claiming))])
            raise
        except StoreError:
            # It may have arrived all the same. Not waited for: the server has just not answered.
            self._soon(self._give_back(told=True))
            raise

    async def renew(self) -> None:
        held = await self._ask("renew", self._token, self._milliseconds)
        if not held:
            lost, self._on_lost = self._on_lost, None
            if lost is not None:
                lost()
            raise LeaseLost(f"the lease on {self.key!r} ran out, was taken or was released")

    async def release(self) -> None:
        if self._released:
            return
        self._released = True
        task = self._soon(self._give_back())
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            # Left behind, the key would lock the thread until it runs out (FB-42).
            await asyncio.wait([task])
            raise

    def _ask(self, script: str, *arguments: Any) -> Awaitable[Any]:
        return self._script(script, [self._name], list(arguments))

    def _soon(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` to its end, whoever is cancelled; the store waits for it when it closes."""
        task = asyncio.create_task(work, name=f"release {self.key!r}")
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)
        return task

    async def _undo(self, claiming: asyncio.Future[Any]) -> None:
        await asyncio.wait([claiming])
        if claiming.exception() is not None or claiming.result():
            await self._give_back()

    async def _give_back(self, *, told: bool = False) -> None:
        """Release on the server; `told` where the caller knows that it cannot be reached."""
        try:
            await self._ask("release", self._token)
        except StoreError as error:
            if not told:
                _log.warning(
                    "a lease was not released and will run out", key=self.key, error=str(error)
                )
