"""A lease in Redis: a key with a random token and a lifetime."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from flowrt.errors import LeaseLost, StoreError
from flowrt.observe.log import get_logger

T = TypeVar("T")

_log = get_logger("flowrt.storage")


class RedisLease:
    """Held while the key carries our token; a killed holder's runs out after its lifetime."""

    def __init__(
        self,
        call: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]],
        client: Any,
        scripts: dict[str, Any],
        name: bytes,
        key: str,
        token: str,
        ttl: float,
    ) -> None:
        self.key = key
        self.on_lost: Callable[[], None] | None = None
        self._call = call
        self._client = client
        self._scripts = scripts
        self._name = name
        self._token = token
        self._milliseconds = max(1, round(ttl * 1000))
        self._released = False

    async def claim(self) -> bool:
        """Take the key unless somebody has it."""
        return bool(await self._client.set(self._name, self._token, nx=True, px=self._milliseconds))

    async def renew(self) -> None:
        held = await self._script("renew", self._token, self._milliseconds)
        if not held:
            lost, self.on_lost = self.on_lost, None
            if lost is not None:
                lost()
            raise LeaseLost(f"the lease on {self.key!r} ran out or was taken")

    async def release(self) -> None:
        if self._released:
            return
        self._released = True
        releasing = asyncio.ensure_future(self._release())
        try:
            await asyncio.shield(releasing)
        except asyncio.CancelledError:
            # Left behind, the key would lock the thread until it runs out.
            await asyncio.wait([releasing])
            raise

    async def _release(self) -> None:
        try:
            await self._script("release", self._token)
        except StoreError as error:
            _log.warning(
                "a lease was not released and will run out", key=self.key, error=str(error)
            )

    async def _script(self, name: str, *arguments: Any) -> Any:
        script = self._scripts[name]
        return await self._call(lambda: script(keys=[self._name], args=list(arguments)))
