"""The store in memory."""

from __future__ import annotations

import pytest

from flowrt.errors import StoreError
from flowrt.storage.memory import MemoryStore
from flowrt.storage.protocol import KeyValue, Lease
from flowrt.testing.store_conformance import StoreConformance
from tests.storage.hands import HandClock

MIB = 1024 * 1024


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> KeyValue:
        self.clock = HandClock()
        return MemoryStore(clock=self.clock)

    def another(self, store: KeyValue) -> KeyValue:
        return store

    async def advance(self, store: KeyValue, seconds: float) -> None:
        self.clock.advance(seconds)

    async def take_away(self, store: KeyValue, lease: Lease) -> None:
        await store.close()
        await store.open()


class TestBoundedMemoryStore(TestMemoryStore):
    @pytest.fixture
    def store(self) -> KeyValue:
        self.clock = HandClock()
        return MemoryStore(max_bytes=64 * MIB, clock=self.clock)


async def names(store: MemoryStore) -> list[str]:
    return [key.name for key in (await store.scan("s")).keys]


async def test_the_least_recently_used_keys_go_first() -> None:
    store = MemoryStore(max_bytes=10_000)
    for name in "abc":
        await store.set("s", name, b"x" * 2500)
    await store.get("s", "a")
    await store.append("s", "d", [b"x" * 2500])
    assert ["a", "c", "d"] == await names(store)
    await store.read_log("s", "d")
    await store.set("s", "c", b"y")
    await store.set("s", "e", b"x" * 6000)
    assert ["c", "d", "e"] == await names(store)


async def test_the_bound_holds_for_any_mix_of_writes() -> None:
    store = MemoryStore(max_bytes=50_000)
    for at in range(3000):
        key = f"{'k' * (at % 50)}{at % 97}"
        match at % 5:
            case 0:
                await store.set("s", f"v{key}", b"x" * (at * 31 % 5000), ttl=60 if at % 2 else None)
            case 1 | 2:
                await store.append("s", f"l{key}", [b"y" * (at * 17 % 700)] * 3, head=at)
            case 3:
                await store.rewrite("s", f"l{key}", [b"z"])
            case 4:
                await store.delete("s", f"v{key}")
        assert store._bytes <= 50_000
    for name in await names(store):
        await store.delete("s", name)
    assert (0, {}, {}) == (store._bytes, store._slots, store._names)


async def test_a_key_larger_than_the_store_is_refused_and_evicts_nothing() -> None:
    store = MemoryStore(max_bytes=10_000)
    await store.set("s", "small", 1)
    await store.append("s", "log", [b"x" * 5000])
    for write in (
        store.set("s", "large", b"x" * 10_000),
        store.append("s", "log", [b"x" * 5000]),
        store.rewrite("s", "log", [b"x" * 10_000]),
    ):
        with pytest.raises(StoreError, match=r"memory:.*FLOWRT_VOLATILE"):
            await write
    assert ["log", "small"] == await names(store)
    log = await store.read_log("s", "log")
    assert log is not None
    assert (1, [b"x" * 5000]) == (log.version, log.entries)


async def test_evictions_leave_a_line_a_minute_that_counts_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = HandClock()
    store = MemoryStore(max_bytes=3000, clock=clock)

    async def fill(count: int) -> list[str]:
        for _ in range(count):
            await store.append("s", f"{clock.monotonic()}", [b"x" * 1500])
            clock.advance(0.001)
        return capsys.readouterr().err.splitlines()

    assert [] == await fill(1)
    lines = await fill(10)
    assert 1 == len(lines)
    assert '"evicted": 1' in lines[0]
    assert '"maxBytes": 3000' in lines[0]
    clock.advance(60)
    lines = await fill(1)
    assert 1 == len(lines)
    assert '"evicted": 10' in lines[0]
    await fill(2)
    await store.close()
    assert '"evicted": 2' in capsys.readouterr().err


async def test_what_expires_is_freed_without_being_asked_for() -> None:
    clock = HandClock()
    store = MemoryStore(clock=clock)
    for at in range(1000):
        await store.set("s", f"k{at}", "x", ttl=60)
    clock.advance(61)
    await store.set("s", "other", 1)
    assert 1 == len(store._slots)


async def test_writing_one_key_with_a_lifetime_again_and_again_does_not_pile_up() -> None:
    store = MemoryStore(clock=HandClock())
    for at in range(10_000):
        await store.append("s", "log", [b"x"], ttl=86400)
        await store.set("s", f"k{at % 10}", at, ttl=86400)
    assert 100 > len(store._expiries)
