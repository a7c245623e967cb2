"""Posts that were taken and not yet worked to their end, where no queue outlives the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

from flowrt.errors import StoreError
from flowrt.ids import new_id
from flowrt.observe.log import Logger
from flowrt.sources.slack_ledger import POST_TTL
from flowrt.storage.lease import TTL, hold
from flowrt.storage.tiers import Space


class Inbox:
    """The posts of one flow that this process has.

    A process holds a lease as long as it lives, so that the posts of one that was killed are told
    from those of another that runs; `found` is called with those. A store that fails raises
    `StoreError`.
    """

    def __init__(
        self, space: Space, flow: str, log: Logger, found: Callable[[dict[str, Any]], object]
    ) -> None:
        self._space = space
        self._found = found
        self._opening = asyncio.Lock()
        self._opened = False
        self._flow = f"slack/inbox/{quote(flow, safe='')}/"
        self._mine = f"{self._flow}{new_id()}/"
        self._log = log
        self._held = AsyncExitStack()

    async def open(self) -> None:
        """Begin with the posts of processes that are gone, the oldest of a channel first; once."""
        async with self._opening:
            if self._opened:
                return
            async with AsyncExitStack() as held:
                await held.enter_async_context(hold(self._space, self._mine, wait=0))
                for owner in await self._owners():
                    await self._take_over(owner)
                self._held = held.pop_all()
            self._opened = True

    async def close(self) -> None:
        """What is still in it is for the next process."""
        await self._held.aclose()

    async def put(self, key: str, post: dict[str, Any]) -> None:
        """Keep a post until it is done."""
        await self.open()
        await self._space.set(self._mine + key, post, ttl=POST_TTL)

    async def done(self, key: str) -> None:
        """A post was worked to its end, or not taken after all."""
        try:
            await self._space.delete(self._mine + key)
        except StoreError as error:
            self._log.warning("a post stays in the inbox", post=key, error=str(error))

    async def _owners(self) -> list[str]:
        keys = await self._keys(self._flow)
        return sorted({self._flow + _owner(key, self._flow) for key in keys} - {self._mine})

    async def _keys(self, prefix: str) -> list[str]:
        keys: list[str] = []
        after = None
        while True:
            page = await self._space.scan(prefix, after=after)
            keys += [found.name for found in page.keys]
            if (after := page.after) is None:
                return keys

    async def _take_over(self, owner: str) -> None:
        lease = await self._space.try_lease(owner, ttl=TTL)
        if lease is None:
            return
        try:
            for key in await self._keys(owner):
                if (stored := await self._space.get(key)) is not None:
                    name = key.removeprefix(owner)
                    await self._space.set(self._mine + name, stored.value, ttl=POST_TTL)
                    await self._space.delete(key)
                    self._log.warning("a post of a process that is gone is worked", post=name)
                    self._found(stored.value)
        finally:
            await lease.release()


def _owner(key: str, flow: str) -> str:
    return key.removeprefix(flow).partition("/")[0] + "/"
