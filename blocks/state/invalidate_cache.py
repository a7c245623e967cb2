"""`invalidate-cache`: forget a cached result."""

from __future__ import annotations

from pydantic import Field

from blocks.state.keys import cache_key, cache_space
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.message import Message


class InvalidateCacheSettings(Settings):
    """Settings of `invalidate-cache`."""

    key: Expr = Field(description="The key of the `cache-scope`; null, empty or blank is an error.")


class InvalidateCache(Block[InvalidateCacheSettings]):
    """Forgets what a `cache-scope` keeps under a key; nothing there is fine.

    Unlike a cache that cannot be read, one that cannot forget fails the block: what it keeps is
    known to be wrong.

    ```yaml
    - type: invalidate-cache
      settings:
        key: '"profile:" + body.userId'
    ```
    """

    Settings = InvalidateCacheSettings

    async def run(self, message: Message, run: Run) -> Message:
        await cache_space(run).delete(cache_key(self.settings.key, message, "invalidate-cache"))
        return message
