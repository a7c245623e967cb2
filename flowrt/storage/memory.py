"""A store in the process's own memory: `memory:`, and the volatile tier where none is named."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flowrt.clock import Clock, SystemClock
from flowrt.errors import LeaseLost, StoreError, VersionConflict
from flowrt.storage.encoding import (
    JSON,
    LOG,
    check_kind,
    decode_value,
    encode_entries,
    encode_json,
    encode_value,
    kind_name,
    lifetime,
)
from flowrt.storage.evictions import Evictions
from flowrt.storage.protocol import Key, Log, Page, Stored

if TYPE_CHECKING:
    from flowrt.storage.agents.memory import MemoryAgentStore

VOLATILE_BYTES = 64 * 1024 * 1024
"""Bytes the volatile tier keeps in a process; beyond it the least recently used keys go."""

_SLOT_BYTES = 400
_ENTRY_BYTES = 60

_Place = tuple[str, str]


@dataclass(slots=True)
class _Slot:
    kind: int
    data: bytes
    version: int
    expires: float | None
    generation: int = 1
    entries: list[bytes] = field(default_factory=list)
    size: int = 0


class MemoryStore:
    """Keeps everything in memory; unbounded, or the most recently used `max_bytes` of it.

    `max_bytes` counts keys, values and what Python needs to hold them; a key that alone is larger
    is refused with `StoreError`. What had to go leaves a log line, at most one a minute. Values
    are kept encoded: a caller that changes its object later does not change what is stored. The
    record of agents is bounded by another `max_bytes`.
    """

    def __init__(
        self, *, max_bytes: int | None = None, clock: Clock | None = None, url: str = "memory:"
    ) -> None:
        self.url = url
        self._max_bytes = max_bytes
        self._clock = clock or SystemClock()
        self._slots: OrderedDict[_Place, _Slot] = OrderedDict()
        self._names: dict[str, list[str]] = {}
        self._expiries: list[tuple[float, _Place]] = []
        self._bytes = 0
        self._leases: dict[_Place, MemoryLease] = {}
        text = "the volatile tier is full; the least recently used keys are gone"
        self._evictions = Evictions(text, max_bytes, self._clock)
        self._agents: MemoryAgentStore | None = None

    def agents(self) -> MemoryAgentStore:
        """The record of agents. What it keeps stays as long as the object does."""
        from flowrt.storage.agents.memory import MemoryAgentStore

        if self._agents is None:
            self._agents = MemoryAgentStore(self._clock, max_bytes=self._max_bytes, url=self.url)
        return self._agents

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Let go of leases. What is stored stays as long as the object does."""
        self._leases.clear()
        self._evictions.report()
        if self._agents is not None:
            self._agents.evictions.report()

    async def get(self, space: str, key: str) -> Stored | None:
        slot = self._find(space, key)
        if slot is None:
            return None
        check_kind(key, slot.kind, log=False)
        return Stored(decode_value(slot.kind, slot.data), slot.version)

    async def set(
        self,
        space: str,
        key: str,
        value: Any,
        *,
        expect: int | None = None,
        ttl: float | None = None,
    ) -> int:
        kind, data = encode_value(value)
        expires = self._expires(ttl)
        before = self._expect(space, key, expect)
        if before is not None:
            check_kind(key, before.kind, log=False)
        version = before.version + 1 if before else 1
        return self._put((space, key), _Slot(kind, data, version, expires), len(data))

    async def delete(self, space: str, key: str, *, expect: int | None = None) -> bool:
        found = self._expect(space, key, expect)
        if found is not None:
            self._drop((space, key))
        return found is not None

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
        data, new, expires = encode_json(head), encode_entries(entries), self._expires(ttl)
        before = self._log_slot(space, key, expect)
        if before is None:
            return self._put((space, key), _Slot(LOG, data, 1, expires, 1, new), _size(data, new))
        size = before.size - len(before.data) + _size(data, new)
        # The list is the stored one and grows in place: an append costs what is new.
        slot = _Slot(LOG, data, before.version + 1, expires, before.generation, before.entries)
        version = self._put((space, key), slot, size)
        slot.entries += new
        return version

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
        data, new, expires = encode_json(head), encode_entries(entries), self._expires(ttl)
        before = self._log_slot(space, key, expect)
        version, generation = (before.version, before.generation) if before else (0, 0)
        slot = _Slot(LOG, data, version + 1, expires, generation + 1, new)
        return self._put((space, key), slot, _size(data, new))

    async def read_log(self, space: str, key: str, *, entries: bool = True) -> Log | None:
        slot = self._find(space, key)
        if slot is None:
            return None
        check_kind(key, slot.kind, log=True)
        head = decode_value(JSON, slot.data)
        kept = list(slot.entries) if entries else []
        return Log(head, kept, slot.version, slot.generation)

    async def scan(
        self, space: str, prefix: str = "", *, after: str | None = None, limit: int = 500
    ) -> Page:
        self._purge()
        names = self._names.get(space, [])
        at = bisect_left(names, prefix)
        if after is not None:
            at = max(at, bisect_right(names, after))
        keys: list[Key] = []
        for name in names[at : at + limit + 1]:
            if not name.startswith(prefix):
                break
            slot = self._slots[space, name]
            keys.append(Key(name, slot.version, kind_name(slot.kind)))
        more = len(keys) > limit
        return Page(keys[:limit], keys[limit - 1].name if more else None)

    async def try_lease(
        self, space: str, key: str, *, ttl: float, on_lost: Callable[[], None] | None = None
    ) -> MemoryLease | None:
        """Held until it is released: `ttl` is not needed, its holder lives as long as the store."""
        if (space, key) in self._leases:
            return None
        lease = self._leases[space, key] = MemoryLease(self._leases, (space, key), on_lost)
        return lease

    def _expires(self, ttl: float | None) -> float | None:
        seconds = lifetime(ttl)
        return None if seconds is None else self._clock.monotonic() + seconds

    def _purge(self) -> None:
        """Drop what has expired."""
        if not self._expiries:
            return
        now = self._clock.monotonic()
        while self._expiries and self._expiries[0][0] <= now:
            _, place = heapq.heappop(self._expiries)
            slot = self._slots.get(place)
            # A later write may have given the key another lifetime.
            if slot is not None and slot.expires is not None and slot.expires <= now:
                self._drop(place)

    def _find(self, space: str, key: str) -> _Slot | None:
        self._purge()
        slot = self._slots.get((space, key))
        if slot is not None and self._max_bytes is not None:
            self._slots.move_to_end((space, key))
        return slot

    def _expect(self, space: str, key: str, expect: int | None) -> _Slot | None:
        self._purge()
        slot = self._slots.get((space, key))
        actual = slot.version if slot else 0
        if expect is not None and expect != actual:
            raise VersionConflict(key, expect, actual)
        return slot

    def _log_slot(self, space: str, key: str, expect: int | None) -> _Slot | None:
        slot = self._expect(space, key, expect)
        if slot is not None:
            check_kind(key, slot.kind, log=True)
        return slot

    def _put(self, place: _Place, slot: _Slot, size: int) -> int:
        """Store a slot of `size` bytes of content in place of what is there."""
        overhead = _overhead(place)
        if self._max_bytes is not None and size + overhead > self._max_bytes:
            raise StoreError(
                f"key {place[1]!r} needs {size + overhead} bytes, more than the {self._max_bytes} "
                f"of storage {self.url}; name a larger store, such as FLOWRT_VOLATILE=redis://…"
            )
        before = self._slots.get(place)
        slot.size = size
        self._slots[place] = slot
        self._slots.move_to_end(place)
        self._bytes += size - before.size if before else size + overhead
        if before is None:
            insort(self._names.setdefault(place[0], []), place[1])
        if slot.expires is not None:
            self._schedule(slot.expires, place)
        self._evict()
        return slot.version

    def _schedule(self, expires: float, place: _Place) -> None:
        heapq.heappush(self._expiries, (expires, place))
        # Each write with a ttl leaves one; without this they would pile up until the first is due.
        if len(self._expiries) > 2 * len(self._slots) + 64:
            self._expiries = [
                (slot.expires, name)
                for name, slot in self._slots.items()
                if slot.expires is not None
            ]
            heapq.heapify(self._expiries)

    def _evict(self) -> None:
        if self._max_bytes is None or self._bytes <= self._max_bytes:
            return
        before = len(self._slots)
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._slots)))
        self._evictions.add(before - len(self._slots))

    def _drop(self, place: _Place) -> None:
        self._bytes -= self._slots.pop(place).size + _overhead(place)
        names = self._names[place[0]]
        del names[bisect_left(names, place[1])]
        if not names:
            del self._names[place[0]]


class MemoryLease:
    """A lease of a `MemoryStore`. It ends when it is released or the store is closed."""

    def __init__(
        self,
        leases: dict[_Place, MemoryLease],
        place: _Place,
        on_lost: Callable[[], None] | None,
    ) -> None:
        self.key = place[1]
        self._leases = leases
        self._place = place
        self._on_lost = on_lost

    async def renew(self) -> None:
        if self._leases.get(self._place) is not self:
            lost, self._on_lost = self._on_lost, None
            if lost is not None:
                lost()
            raise LeaseLost(f"the lease on {self.key!r} is gone: it was released or its store shut")

    async def release(self) -> None:
        if self._leases.get(self._place) is self:
            del self._leases[self._place]


def _overhead(place: _Place) -> int:
    return _SLOT_BYTES + len(place[0]) + len(place[1])


def _size(data: bytes, entries: Sequence[bytes]) -> int:
    return len(data) + sum(len(entry) for entry in entries) + _ENTRY_BYTES * len(entries)
