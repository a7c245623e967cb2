"""The store in Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis

from flowrt.ids import new_id
from flowrt.storage.protocol import KeyValue, Lease, Log, Stored
from flowrt.storage.redis import CONNECTIONS, RedisStore
from flowrt.testing.store_conformance import StoreConformance
from flowrt.testing.store_conformance.suite import opened


@asynccontextmanager
async def by_hand(url: str) -> AsyncIterator[Redis]:
    """A client beside the store, as an operator would use."""
    client: Redis = Redis.from_url(url)
    try:
        yield client
    finally:
        await client.aclose()


async def elapse(url: str, space: str, seconds: float) -> None:
    """Shorten what the keys of a space have left; its leases live on."""
    async with by_hand(url) as client:
        async for name in client.scan_iter(f"flowrt:{{{space}}}:k:*", count=1000):
            left = await client.pttl(name)
            if left >= 0:
                await client.pexpire(name, int(left - seconds * 1000))


class TestRedisStore(StoreConformance):
    @pytest.fixture
    def store(self, redis_url: str, space: str) -> KeyValue:
        self.url, self.space_name = redis_url, space
        return RedisStore(redis_url)

    def another(self, store: KeyValue) -> KeyValue:
        return RedisStore(self.url)

    async def advance(self, store: KeyValue, seconds: float) -> None:
        await elapse(self.url, self.space_name, seconds)

    async def take_away(self, store: KeyValue, lease: Lease) -> None:
        async with by_hand(self.url) as client:
            name = f"flowrt:{{{self.space_name}}}:lease:{lease.key}"
            assert 1 == await client.delete(name)


@pytest.fixture
def space() -> str:
    return f"test-{new_id()}/user"


async def test_a_log_is_one_key_so_that_nothing_can_part_it(redis_url: str, space: str) -> None:
    """FB-47."""
    async with opened(RedisStore(redis_url)) as store, by_hand(redis_url) as client:
        for number in range(5):
            await store.append(space, "agent-memory/t", [b"%d" % number], ttl=600)
        await store.rewrite(space, "agent-memory/t", [b"all"], ttl=600)
        names = [name async for name in client.scan_iter(f"flowrt:*{space}*", count=1000)]
        lifetimes = {name: await client.pttl(name) for name in names}
    log = f"flowrt:{{{space}}}:k:agent-memory/t".encode()
    index = f"flowrt:{{{space}}}:index:".encode()
    assert {log, index} == set(lifetimes)
    assert 590_000 < lifetimes[log] <= 600_000


async def test_a_lease_that_nobody_renews_runs_out(redis_url: str, space: str) -> None:
    async with opened(RedisStore(redis_url)) as store, by_hand(redis_url) as client:
        lease = await store.try_lease(space, "k", ttl=600)
        assert lease is not None
        name = f"flowrt:{{{space}}}:lease:k"
        assert 590_000 < await client.pttl(name) <= 600_000
        await client.pexpire(name, 1000)
        await lease.renew()
        assert 590_000 < await client.pttl(name) <= 600_000
        await lease.release()
        assert 0 == await client.exists(name)


async def test_names_of_keys_that_are_over_leave_the_index(redis_url: str, space: str) -> None:
    index = f"flowrt:{{{space}}}:index:"
    async with opened(RedisStore(redis_url)) as store, by_hand(redis_url) as client:
        for number in range(200):
            await store.set(space, f"old {number}", 1, ttl=60)
        await elapse(redis_url, space, 61)
        for number in range(200):
            await store.set(space, f"new {number}", 1, ttl=60)
        # Two names are looked at with each new key, so the dead are never many.
        assert await client.zcard(index) < 320
        await elapse(redis_url, space, 61)
        assert [] == (await store.scan(space)).keys
        assert 0 == await client.exists(index)


async def test_a_scan_goes_on_over_a_long_stretch_of_dead_names(redis_url: str, space: str) -> None:
    async with opened(RedisStore(redis_url)) as store:
        for number in range(100):
            await store.set(space, f"a{number:03}", 1, ttl=60 if number > 2 else None)
        await store.set(space, "b", 1)
        await elapse(redis_url, space, 61)
        page = await store.scan(space, limit=4)
    assert ["a000", "a001", "a002", "b"] == [key.name for key in page.keys]
    assert page.after is None


async def test_more_callers_than_connections_wait_their_turn(redis_url: str, space: str) -> None:
    async with opened(RedisStore(redis_url)) as store, by_hand(redis_url) as client:
        await store.set(space, "k", "value")
        calls = 20 * CONNECTIONS
        found = await asyncio.gather(*(store.get(space, "k") for _ in range(calls)))
        clients = await client.client_list()
    assert [Stored("value", 1)] * calls == found
    # The store's own, this test's, and those of stores of tests beside this one.
    assert len(clients) <= 4 * CONNECTIONS


async def test_scripts_that_the_server_forgot_are_loaded_again(redis_url: str, space: str) -> None:
    async with opened(RedisStore(redis_url)) as store, by_hand(redis_url) as client:
        await store.append(space, "k", [b"1"])
        await client.script_flush()
        await store.append(space, "k", [b"2"])
        assert Log(None, [b"1", b"2"], 2, 1) == await store.read_log(space, "k")


async def test_two_databases_of_one_server_are_two_stores(redis_url: str, space: str) -> None:
    other_url = redis_url.removesuffix("/0") + "/1"
    async with opened(RedisStore(redis_url)) as one, opened(RedisStore(other_url)) as other:
        await one.set(space, "k", "one")
        assert await other.get(space, "k") is None
