"""`cache-scope`: keep the result of a chain."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from blocks.state.keys import cache_key, cache_space
from flowrt.clock import Clock
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Duration, Expr, SubFlow
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import StoreError
from flowrt.message import Message
from flowrt.observe.log import get_logger


class CacheScopeSettings(Settings):
    """Settings of `cache-scope`."""

    key: Expr = Field(description="What the result depends on; null, empty or blank is an error.")
    ttl: Duration = Field(default=60.0, description="How long a result is used; 0: for ever.")
    body: SubFlow = Field(description="Makes the result, where none is kept.")


class CacheScope(Block[CacheScopeSettings]):
    """Runs a chain once for each key and uses the body it made until it expires.

    Only the body is kept: variables that the chain sets are there when it ran, and not when its
    result is used. A dropped or stopped message is not kept. Two messages that want the same key at
    the same time may both run the chain. A store that fails costs a log line and never the
    message.

    ```yaml
    - type: cache-scope
      key: '"profile:" + body.userId'
      ttl: 10m
      body:
        process:
          - type: object-read
            settings: {key: body.userId}
    ```
    """

    Settings = CacheScopeSettings

    def __init__(self, settings: CacheScopeSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._body = site.chain(settings.body, "body")
        self._log = get_logger(site.address)

    async def run(self, message: Message, run: Run) -> Message | None:
        key = cache_key(self.settings.key, message, "cache-scope")
        entry = await self._read(key, run)
        if entry is not None:
            message.body = entry["body"]
            message.raw = entry.get("raw", False)
            return message
        result = await self._body.run(message, run)
        if result is not None and not result.stop:
            await self._write(key, result, run)
        return result

    async def _read(self, key: str, run: Run) -> dict[str, Any] | None:
        try:
            stored = await cache_space(run).get(key)
        except StoreError as error:
            self._log.warning("the cache was not read", error=str(error))
            return None
        if stored is None:
            return None
        entry: dict[str, Any] = stored.value
        expires = entry["expiresAt"]
        return entry if expires == 0 or _nanoseconds(run.clock) < expires else None

    async def _write(self, key: str, result: Message, run: Run) -> None:
        ttl = self.settings.ttl
        expires = _nanoseconds(run.clock) + round(ttl * 1e9) if ttl else 0
        entry = {"expiresAt": expires, "body": result.body}
        if result.raw:
            entry["raw"] = True
        try:
            await cache_space(run).set(key, entry, ttl=ttl or None)
        except StoreError as error:
            self._log.warning("the result was not cached", error=str(error))


def _nanoseconds(clock: Clock) -> int:
    # The wall clock: other processes, and this one after a restart, read the same entry.
    return round(clock.now().timestamp() * 1e6) * 1000
