"""What a store can do: the one protocol that every backend keeps and the rest is built on.

A store is a flat map per *space* (`<service>/<namespace>`, see `flowrt.storage.tiers`). A key holds
either a **value** (JSON or bytes) or a **log** (a head and an ordered list of entries). Each has a
**version**: 1 when created, one more with every write. A write says which version it was based on:

* ``expect=None``: write whatever is there;
* ``expect=0``: only where nothing is stored;
* ``expect=n``: only where version n is stored.

Anything else raises `VersionConflict` and changes nothing. Where a key was deleted or has expired,
nothing is stored and versions start again.

What is refused, before anything is written: a value that would not come back equal, with
`ValueError` naming the path in it (`flowrt.storage.encoding`); an entry that is not bytes, with
`TypeError`; a `ttl` that is not above 0, with `ValueError`; a value where a log is stored or the
other way round, with `StoreError`. Keys are any text, compared exactly. Times are seconds.

A write that is cancelled happens whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Stored:
    """A value and the version it is at. `value` is the JSON value or the bytes that were set."""

    value: Any
    version: int


@dataclass(frozen=True, slots=True)
class Log:
    """A log as read: its head (a JSON value), its entries in order, its version and generation.

    `generation` is 1 for a new log and rises with every `rewrite`.
    """

    head: Any
    entries: list[bytes]
    version: int
    generation: int


@dataclass(frozen=True, slots=True)
class Key:
    """One key found by a scan."""

    name: str
    version: int
    kind: Literal["value", "log"]


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a scan, ordered by key (by Unicode code point). `after` is None on the last one."""

    keys: list[Key]
    after: str | None


class Lease(Protocol):
    """A claim on a key that at most one holder has at a time, in all processes of the store."""

    key: str

    async def renew(self) -> None:
        """Hold on for another full lease time. Raises `LeaseLost` where it is no longer held."""
        ...

    async def release(self) -> None:
        """Give it up. Safe to call twice, after a loss, and when cancelled at any point."""
        ...


class KeyValue(Protocol):
    """A store. Every method may raise `StoreUnavailable` or `StoreError`."""

    url: str
    """Where it is, password masked; for error texts."""

    async def open(self) -> None:
        """Connect, migrate, check. Raises `StoreUnavailable` naming the URL."""
        ...

    async def close(self) -> None:
        """Finish writes under way and let go. Safe to call twice; `open` may follow."""
        ...

    async def get(self, space: str, key: str) -> Stored | None:
        """The value at `key`, or None. Raises `StoreError` where a log is stored there."""
        ...

    async def set(
        self,
        space: str,
        key: str,
        value: Any,
        *,
        expect: int | None = None,
        ttl: float | None = None,
    ) -> int:
        """Store a JSON value or bytes and return the new version. `ttl` None keeps it for good."""
        ...

    async def delete(self, space: str, key: str, *, expect: int | None = None) -> bool:
        """Remove a value or a log; whether there was one."""
        ...

    async def append(
        self,
        space: str,
        key: str,
        entries: Sequence[bytes],
        *,
        head: Any = None,
        expect: int | None = None,
        ttl: float | None = None,
    ) -> int:
        """Add entries at the end of a log, replace its head, and return the new version.

        Creates the log where nothing is stored. Costs what is new, not what is stored. `ttl`
        applies to the whole log from now on; None keeps it for good.
        """
        ...

    async def rewrite(
        self,
        space: str,
        key: str,
        entries: Sequence[bytes],
        *,
        head: Any = None,
        expect: int | None = None,
        ttl: float | None = None,
    ) -> int:
        """Start a new generation of a log with these entries and head; the old entries are gone."""
        ...

    async def read_log(self, space: str, key: str, *, entries: bool = True) -> Log | None:
        """A log whole, or None. Raises `StoreError` where a value is stored there.

        Without `entries` it has none, and costs the same however long it is.
        """
        ...

    async def scan(
        self, space: str, prefix: str = "", *, after: str | None = None, limit: int = 500
    ) -> Page:
        """The keys that start with `prefix`, compared exactly, from behind `after` on."""
        ...

    async def try_lease(
        self, space: str, key: str, *, ttl: float, on_lost: Callable[[], None] | None = None
    ) -> Lease | None:
        """Claim `key`, or None where somebody holds it. `ttl`: how long it lasts without `renew`.

        A store that notices the end of a holder by itself may ignore `ttl`. `on_lost` is called
        once, from the event loop, when a `renew` finds the lease gone.
        """
        ...
