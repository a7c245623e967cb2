"""A store in the process's own memory: `memory:`, and the volatile tier where none is named."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flowrt.clock import Clock, SystemClock
from flowrt.errors import LeaseLost, StoreError, VersionConflict
from flowrt.observe.log import get_logger
from flowrt.storage.encoding import (
    LOG,
    decode_value,
    encode_json,
    encode_key,
    encode_value,
)
from flowrt.storage.protocol import Key, Log, Page, Stored

VOLATILE_BYTES = 64 * 1024 * 1024
"""Bytes of values the volatile tier keeps in a process; the least recently used go."""

_log = get_logger("flowrt.storage")


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
    """Keeps everything in memory; unbounded, or the most recently used `max_bytes`.

    An eviction leaves a log line. Values are kept encoded, so that nobody holds a reference to
    what is stored.
    """

    url = "memory:"

    def __init__(self, *, max_bytes: int | None = None, clock: Clock | None = None) -> None:
        self._max_bytes = max_bytes
        self._clock = clock or SystemClock()
        self._slots: OrderedDict[tuple[str, str], _Slot] = OrderedDict()
        self._bytes = 0
        self._leases: dict[tuple[str, str], tuple[MemoryLease, float]] = {}

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """What is stored stays as long as the object does."""

    async def get(self, space: str, key: str) -> Stored | None:
        slot = self._find(space, key)
        if slot is None:
            return None
        if slot.kind == LOG:
            raise StoreError(f"key {key!r} holds a log, not a value")
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
        before = self._expect(space, key, expect)
        if before is not None and before.kind == LOG:
            raise StoreError(f"key {key!r} holds a log, not a value")
        version = before.version + 1 if before else 1
        self._put(space, key, _Slot(kind, data, version, self._until(ttl)))
        return version

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
        data = encode_json(head)
        slot = self._log_slot(space, key, expect)
        grown = sum(len(entry) for entry in entries) + len(data) - len(slot.data)
        slot.entries += [bytes(entry) for entry in entries]
        return self._touch(space, key, slot, data, grown, ttl)

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
        data = encode_json(head)
        slot = self._log_slot(space, key, expect)
        if slot.version:
            slot.generation += 1
        slot.entries = [bytes(entry) for entry in entries]
        grown = sum(len(entry) for entry in entries) + len(data) - slot.size
        return self._touch(space, key, slot, data, grown, ttl)

    async def read_log(self, space: str, key: str) -> Log | None:
        slot = self._find(space, key)
        if slot is None:
            return None
        if slot.kind != LOG:
            raise StoreError(f"key {key!r} holds a value, not a log")
        head = decode_value(0, slot.data)
        return Log(head, list(slot.entries), slot.version, slot.generation)

    async def scan(
        self, space: str, prefix: str = "", *, after: str | None = None, limit: int = 500
    ) -> Page:
        names = sorted(
            (key for in_space, key in self._slots if in_space == space and key.startswith(prefix)),
            key=encode_key,
        )
        if after is not None:
            names = [name for name in names if encode_key(name) > encode_key(after)]
        keys = []
        for name in names:
            if (slot := self._alive((space, name))) is not None:
                keys.append(Key(name, slot.version, "log" if slot.kind == LOG else "value"))
            if len(keys) > limit:
                break
        more = len(keys) > limit
        return Page(keys[:limit], keys[limit - 1].name if more else None)

    async def try_lease(
        self, space: str, key: str, *, ttl: float, on_lost: Callable[[], None] | None = None
    ) -> MemoryLease | None:
        now = self._clock.monotonic()
        held = self._leases.get((space, key))
        if held is not None and held[1] > now:
            return None
        lease = MemoryLease(self, (space, key), ttl, on_lost)
        self._leases[space, key] = (lease, now + ttl)
        return lease

    def _renew(self, lease: MemoryLease) -> bool:
        now = self._clock.monotonic()
        held, until = self._leases.get(lease.place, (None, 0.0))
        if held is not lease or until <= now:
            return False
        self._leases[lease.place] = (lease, now + lease.ttl)
        return True

    def _release(self, lease: MemoryLease) -> None:
        if self._leases.get(lease.place, (None, 0.0))[0] is lease:
            del self._leases[lease.place]

    def _until(self, ttl: float | None) -> float | None:
        return None if ttl is None else self._clock.monotonic() + ttl

    def _alive(self, place: tuple[str, str]) -> _Slot | None:
        slot = self._slots.get(place)
        if slot is None:
            return None
        if slot.expires is not None and slot.expires <= self._clock.monotonic():
            self._drop(place)
            return None
        return slot

    def _find(self, space: str, key: str) -> _Slot | None:
        slot = self._alive((space, key))
        if slot is not None and self._max_bytes is not None:
            self._slots.move_to_end((space, key))
        return slot

    def _expect(self, space: str, key: str, expect: int | None) -> _Slot | None:
        slot = self._alive((space, key))
        actual = slot.version if slot else 0
        if expect is not None and expect != actual:
            raise VersionConflict(key, expect, actual)
        return slot

    def _log_slot(self, space: str, key: str, expect: int | None) -> _Slot:
        slot = self._expect(space, key, expect)
        if slot is not None and slot.kind != LOG:
            raise StoreError(f"key {key!r} holds a value, not a log")
        return slot or _Slot(LOG, b"", 0, None)

    def _touch(
        self, space: str, key: str, slot: _Slot, head: bytes, grown: int, ttl: float | None
    ) -> int:
        slot.data = head
        slot.version += 1
        slot.expires = self._until(ttl)
        if (space, key) in self._slots:
            self._bytes -= slot.size
        slot.size += grown
        self._place(space, key, slot)
        return slot.version

    def _put(self, space: str, key: str, slot: _Slot) -> None:
        before = self._slots.get((space, key))
        if before is not None:
            self._bytes -= before.size
        slot.size = len(slot.data)
        self._place(space, key, slot)

    def _place(self, space: str, key: str, slot: _Slot) -> None:
        self._slots[space, key] = slot
        self._slots.move_to_end((space, key))
        self._bytes += slot.size
        if self._max_bytes is not None:
            self._evict(self._max_bytes)

    def _evict(self, most: int) -> None:
        evicted = 0
        while self._bytes > most and len(self._slots) > 1:
            self._drop(next(iter(self._slots)))
            evicted += 1
        if evicted:
            _log.warning(
                "the volatile tier is full; the least recently used keys are gone",
                evicted=evicted,
                maxBytes=most,
            )

    def _drop(self, place: tuple[str, str]) -> None:
        self._bytes -= self._slots.pop(place).size


class MemoryLease:
    """A lease of a `MemoryStore`."""

    def __init__(
        self,
        store: MemoryStore,
        place: tuple[str, str],
        ttl: float,
        on_lost: Callable[[], None] | None,
    ) -> None:
        self._store = store
        self._on_lost = on_lost
        self.place = place
        self.key = place[1]
        self.ttl = ttl

    async def renew(self) -> None:
        if not self._store._renew(self):
            lost, self._on_lost = self._on_lost, None
            if lost is not None:
                lost()
            raise LeaseLost(f"the lease on {self.key!r} expired")

    async def release(self) -> None:
        self._store._release(self)
