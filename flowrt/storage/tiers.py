"""The tiers of one running service: where each namespace lives.

`user` and `system` are in the persistent store, `user_volatile` and `system_volatile` in the
volatile one. The service's name is part of every space, so that two services on one store never
see each other's keys.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import quote

from flowrt.errors import CallError
from flowrt.storage.memory import VOLATILE_BYTES, MemoryStore
from flowrt.storage.protocol import KeyValue, Lease, Log, Page, Stored

DEFAULT_URL = "sqlite:.flowrt/state.db"
NAMESPACES = ("user", "system", "user_volatile", "system_volatile")


def open_store(url: str, *, durable: bool = True) -> KeyValue:
    """The store a URL names: ``sqlite:PATH``, ``redis://…``, ``rediss://…``, ``memory:``.

    Other schemes are looked up among the entry points `flowrt.stores`; such a class is called with
    the URL. Raises `CallError` for a scheme nobody provides. Nothing is opened yet. `durable` says
    that the store is to keep what it is given, and should warn where it may not.
    """
    scheme, _, rest = url.partition(":")
    match scheme:
        case "memory":
            return MemoryStore()
        case "sqlite" if rest:
            from flowrt.storage.sqlite import SqliteStore

            return SqliteStore(rest.removeprefix("//"))
        case "redis" | "rediss":
            from flowrt.storage.redis import RedisStore

            return RedisStore(url, durable=durable)
    return _foreign(scheme, url)


def _foreign(scheme: str, url: str) -> KeyValue:
    from importlib.metadata import entry_points

    from flowrt.observe.masking import mask_text

    for point in entry_points(group="flowrt.stores"):
        if point.name == scheme:
            store: KeyValue = point.load()(url)
            return store
    raise CallError(
        f"storage {mask_text(url)!r} is not known; "
        "write sqlite:PATH, redis://HOST:PORT/DB or memory:"
    )


class Storage:
    """The two stores of a service. They open on first use and close with the service."""

    def __init__(self, service: str, persistent: KeyValue, volatile: KeyValue) -> None:
        self._persistent = Tier(persistent)
        self._volatile = Tier(volatile)
        prefix = quote(service, safe="")
        self._spaces = {
            name: Space(
                self._volatile if name.endswith("_volatile") else self._persistent,
                f"{prefix}/{name}",
            )
            for name in NAMESPACES
        }

    @classmethod
    def from_urls(
        cls,
        service: str,
        storage: str | None = None,
        volatile: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> Self:
        """The tiers that URLs name; unset, `FLOWRT_STORAGE` and `FLOWRT_VOLATILE` decide.

        Without any, the persistent tier is ``sqlite:.flowrt/state.db`` in the working directory
        and the volatile one this process's memory, up to `VOLATILE_BYTES`.
        """
        environ = os.environ if environ is None else environ
        persistent = storage or environ.get("FLOWRT_STORAGE") or DEFAULT_URL
        named = volatile or environ.get("FLOWRT_VOLATILE")
        return cls(
            service,
            open_store(persistent),
            open_store(named, durable=False) if named else MemoryStore(max_bytes=VOLATILE_BYTES),
        )

    def space(self, namespace: str) -> Space:
        """One of `NAMESPACES`."""
        return self._spaces[namespace]

    async def close(self) -> None:
        """Close what was opened."""
        await self._persistent.close()
        await self._volatile.close()


class Queue:
    """Who waits for a lease in this process, in order, without polling the store."""

    __slots__ = ("lock", "waiting")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class Tier:
    """A store that opens once, on first use."""

    def __init__(self, store: KeyValue) -> None:
        self._store = store
        self._opening: asyncio.Task[None] | None = None
        self._opened = False
        self.queues: dict[tuple[str, str], Queue] = {}

    async def store(self) -> KeyValue:
        """The open store. Raises `StoreUnavailable`; the next call tries again."""
        if not self._opened:
            await self._open()
        return self._store

    async def _open(self) -> None:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._store.open())
        opening = self._opening
        try:
            # Shielded: the first caller's cancellation must not fail the others who wait.
            await asyncio.shield(opening)
            self._opened = True
        finally:
            if opening.done():
                self._opening = None

    async def close(self) -> None:
        """Close the store where it was opened; it may be opened again."""
        if self._opened or self._opening is not None:
            self._opened = False
            await self._store.close()


class Space:
    """A store, bound to one service and namespace: `KeyValue` without the `space` argument."""

    __slots__ = ("_tier", "name")

    def __init__(self, tier: Tier, name: str) -> None:
        self._tier = tier
        self.name = name

    @asynccontextmanager
    async def queue(self, key: str) -> AsyncIterator[asyncio.Lock]:
        """The lock for which this process's runs queue before they ask the store for `key`."""
        queues, place = self._tier.queues, (self.name, key)
        queue = queues.setdefault(place, Queue())
        queue.waiting += 1
        try:
            yield queue.lock
        finally:
            queue.waiting -= 1
            if not queue.waiting:
                del queues[place]

    async def get(self, key: str) -> Stored | None:
        return await (await self._tier.store()).get(self.name, key)

    async def set(
        self, key: str, value: Any, *, expect: int | None = None, ttl: float | None = None
    ) -> int:
        store = await self._tier.store()
        return await store.set(self.name, key, value, expect=expect, ttl=ttl)

    async def delete(self, key: str, *, expect: int | None = None) -> bool:
        return await (await self._tier.store()).delete(self.name, key, expect=expect)

    async def append(
        self,
        key: str,
        entries: Sequence[bytes],
        *,
        head: Any = None,
        expect: int | None = None,
        ttl: float | None = None,
    ) -> int:
        store = await self._tier.store()
        return await store.append(self.name, key, entries, head=head, expect=expect, ttl=ttl)

    async def rewrite(
        self,
        key: str,
        entries: Sequence[bytes],
        *,
        head: Any = None,
        expect: int | None = None,
        ttl: float | None = None,
    ) -> int:
        store = await self._tier.store()
        return await store.rewrite(self.name, key, entries, head=head, expect=expect, ttl=ttl)

    async def read_log(self, key: str) -> Log | None:
        return await (await self._tier.store()).read_log(self.name, key)

    async def scan(self, prefix: str = "", *, after: str | None = None, limit: int = 500) -> Page:
        return await (await self._tier.store()).scan(self.name, prefix, after=after, limit=limit)

    async def try_lease(
        self, key: str, *, ttl: float, on_lost: Callable[[], None] | None = None
    ) -> Lease | None:
        store = await self._tier.store()
        return await store.try_lease(self.name, key, ttl=ttl, on_lost=on_lost)
