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
from typing import TYPE_CHECKING, Any, Self

from flowrt.errors import CallError
from flowrt.storage.memory import VOLATILE_BYTES, MemoryStore
from flowrt.storage.protocol import KeyValue, Lease, Log, Page, Stored

if TYPE_CHECKING:
    from flowrt.storage.agents.protocol import AgentStore
    from flowrt.storage.mail.protocol import Mail

DEFAULT_URL = "sqlite:.flowrt/state.db"
OPENING_SECONDS = 1.0
"""How long a store that is being opened may take when it is closed."""
NAMESPACES = ("user", "system", "user_volatile", "system_volatile")


def parse_storage_url(url: str, *, volatile: bool = False) -> KeyValue:
    """The store a URL names: ``sqlite:PATH``, ``redis://…``, ``rediss://…``, ``memory:``.

    Other schemes are looked up among the entry points `flowrt.stores`; such a class is called with
    the URL. Raises `CallError` for a scheme nobody provides. Nothing is opened yet. `volatile` is
    for the volatile tier: memory is bounded by `VOLATILE_BYTES`, and a Redis may drop keys.
    """
    scheme, _, rest = url.partition(":")
    path = rest.removeprefix("//")
    match scheme:
        case "memory" if not path:
            return MemoryStore(max_bytes=VOLATILE_BYTES if volatile else None)
        case "sqlite" if path and path != ":memory:":
            from flowrt.storage.sqlite import SqliteStore

            return SqliteStore(path)
        case "redis" | "rediss":
            from flowrt.storage.redis import RedisStore

            return RedisStore(url, durable=not volatile)
    return _foreign(scheme, url)


def _foreign(scheme: str, url: str) -> KeyValue:
    from importlib.metadata import entry_points

    from flowrt.observe.masking import mask_text

    for point in entry_points(group="flowrt.stores", name=scheme):
        store: KeyValue = point.load()(url)
        return store
    raise CallError(
        f"storage {mask_text(url)!r} is not known; "
        "write sqlite:PATH, redis://HOST:PORT/DB or memory:"
    )


class Storage:
    """The two stores of a service. They open on first use and close with the service."""

    def __init__(self, service: str, persistent: KeyValue, volatile: KeyValue) -> None:
        self._service = service
        self._persistent = Tier(persistent)
        self._volatile = Tier(volatile)
        # Escaped, so that the service `a/user` is not the namespace `user` of the service `a`.
        prefix = service.replace("%", "%25").replace("/", "%2F")
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
        and the volatile one this process's memory, up to `VOLATILE_BYTES`, also where the
        persistent tier is a Redis: replicas that are to share it name one.
        """
        environ = os.environ if environ is None else environ
        persistent = storage or environ.get("FLOWRT_STORAGE") or DEFAULT_URL
        named = volatile or environ.get("FLOWRT_VOLATILE")
        return cls(
            service,
            parse_storage_url(persistent),
            parse_storage_url(named, volatile=True)
            if named
            else MemoryStore(max_bytes=VOLATILE_BYTES),
        )

    def space(self, namespace: str) -> Space:
        """One of `NAMESPACES`."""
        return self._spaces[namespace]

    def agents(self, volatile: bool = False) -> AgentStore:
        """The record of agents in the persistent store, or in the volatile one.

        Raises `CallError` where the store keeps none, as one of others may.
        """
        return (self._volatile if volatile else self._persistent).agents()

    def mail(self) -> Mail | None:
        """The messages of the service in the persistent store; None where it carries none."""
        return self._persistent.mail(self._service)

    @property
    def url(self) -> str:
        """Where the persistent store is, password masked."""
        return self._persistent.url

    @property
    def volatile_is_shared(self) -> bool:
        """Whether other processes have the volatile tier too: it is not in this one's memory."""
        return not self._volatile.url.startswith("memory:")

    async def open(self) -> None:
        """Open both now rather than on first use, so that a missing store is found at the start."""
        await self._persistent.store()
        await self._volatile.store()

    async def close(self) -> None:
        """Close what was opened; the next use opens it again."""
        try:
            await self._persistent.close()
        finally:
            await self._volatile.close()


class Turns:
    """The runs of this process that want one lease: in order, and without asking the store."""

    __slots__ = ("lock", "waiting")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0
        """How many hold the lock or want it."""


def _looked_at(opening: asyncio.Task[None]) -> None:
    """Note how it ended: those who waited may have left, and asyncio would print a traceback."""
    if not opening.cancelled():
        opening.exception()


class Tier:
    """A store that opens once, on first use."""

    def __init__(self, store: KeyValue) -> None:
        self._store = store
        self._opening: asyncio.Task[None] | None = None
        self._opened = False
        self.turns: dict[tuple[str, str], Turns] = {}

    async def store(self) -> KeyValue:
        """The open store. Raises `StoreUnavailable`; the next call tries again."""
        if not self._opened:
            if self._opening is None:
                self._opening = asyncio.create_task(self._open(), name="open a store")
                self._opening.add_done_callback(_looked_at)
            # Shielded: the first caller's cancellation must not fail the others who wait.
            await asyncio.shield(self._opening)
        return self._store

    def agents(self) -> AgentStore:
        """The record of agents in the store, which it opens on first use. Raises `CallError`.

        Imported here: a service without an `agentId` does not pay for it.
        """
        from flowrt.storage.agents.opening import OpeningAgents
        from flowrt.storage.agents.protocol import KeepsAgents

        if not isinstance(self._store, KeepsAgents):
            raise CallError(
                f"storage {self._store.url} keeps no record of agents, it has no method `agents`; "
                "leave out `agentId`, or name a store that has one: sqlite:PATH, "
                "redis://HOST:PORT/DB or memory:"
            )
        return OpeningAgents(self.store, self._store.agents())

    def mail(self, service: str) -> Mail | None:
        """The messages of a service in the store, which they open on first use."""
        from flowrt.storage.mail.protocol import KeepsMail

        store = self._store
        return store.mail(service, self.store) if isinstance(store, KeepsMail) else None

    @property
    def url(self) -> str:
        """Where the store is, password masked."""
        return self._store.url

    async def _open(self) -> None:
        try:
            await self._store.open()
            self._opened = True
        finally:
            self._opening = None

    async def close(self) -> None:
        """Close the store where it was opened; it may be opened again."""
        if (opening := self._opening) is not None:
            _, late = await asyncio.wait([opening], timeout=OPENING_SECONDS)
            if late:
                # A store that does not answer would hold up the end of the service.
                opening.cancel()
                await asyncio.wait([opening])
        if self._opened:
            self._opened = False
            await self._store.close()


class Space:
    """A store, bound to one service and namespace: `KeyValue` without the `space` argument.

    Keys are not empty: callers check what authors wrote (dialect: an empty key is an error).
    """

    __slots__ = ("_tier", "name")

    def __init__(self, tier: Tier, name: str) -> None:
        self._tier = tier
        self.name = name

    @asynccontextmanager
    async def turns(self, key: str) -> AsyncIterator[Turns]:
        """Join the runs of this process that want the lease on `key`."""
        place = (self.name, key)
        turns = self._tier.turns.setdefault(place, Turns())
        turns.waiting += 1
        try:
            yield turns
        finally:
            turns.waiting -= 1
            if not turns.waiting:
                del self._tier.turns[place]

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

    async def read_log(self, key: str, *, entries: bool = True) -> Log | None:
        return await (await self._tier.store()).read_log(self.name, key, entries=entries)

    async def scan(self, prefix: str = "", *, after: str | None = None, limit: int = 500) -> Page:
        return await (await self._tier.store()).scan(self.name, prefix, after=after, limit=limit)

    async def try_lease(
        self, key: str, *, ttl: float, on_lost: Callable[[], None] | None = None
    ) -> Lease | None:
        store = await self._tier.store()
        return await store.try_lease(self.name, key, ttl=ttl, on_lost=on_lost)
