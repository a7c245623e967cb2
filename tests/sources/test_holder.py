"""One of several replicas holds; each has its own connections to one store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import redis.asyncio

from flowrt.ids import new_id
from flowrt.sources.holder import Holder
from flowrt.storage.memory import MemoryStore
from flowrt.storage.protocol import KeyValue
from flowrt.storage.redis import RedisStore
from flowrt.storage.sqlite import SqliteStore
from flowrt.storage.tiers import Space, Tier

KEY = f"cron_{new_id()}"  # the Redis may be shared


def holder(store: KeyValue) -> tuple[Holder, Tier]:
    tier = Tier(store)
    return Holder(Space(tier, "test/system"), KEY), tier


async def test_the_first_stays_the_one_until_it_lets_go() -> None:
    store = MemoryStore()
    first, second = holder(store)[0], holder(store)[0]
    assert [True, False, True, False] == [
        await each.holds() for each in (first, second, first, second)
    ]
    await first.release()
    assert [True, False] == [await second.holds(), await first.holds()]
    await second.release()


async def test_one_that_was_held_up_finds_out_when_it_asks(redis_url: str) -> None:
    (first, one), (second, two) = holder(RedisStore(redis_url)), holder(RedisStore(redis_url))
    assert await first.holds()
    async with redis.asyncio.Redis.from_url(redis_url) as server:
        # As if its time were over, and nobody had renewed it.
        keys = [key async for key in server.scan_iter(match=f"*{KEY}*")]
        assert 1 == await server.delete(*keys)
    assert await second.holds()
    assert not await first.holds()
    await second.release()
    assert await first.holds()
    await first.release()
    await one.close()
    await two.close()


async def test_of_many_at_once_one_holds() -> None:
    store = MemoryStore()
    holders = [holder(store)[0] for _ in range(20)]
    assert 1 == sum(await asyncio.gather(*(each.holds() for each in holders)))


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_it_works_on_every_store(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    def store() -> KeyValue:
        if kind == "sqlite":
            return SqliteStore(str(tmp_path / "state.db"))
        return RedisStore(request.getfixturevalue("redis_url"))

    (first, one), (second, two) = holder(store()), holder(store())
    assert (True, False, True) == (await first.holds(), await second.holds(), await first.holds())
    await first.release()
    assert (True, False) == (await second.holds(), await first.holds())
    await second.release()
    await one.close()
    await two.close()


async def test_without_a_store_nobody_holds(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not await holder(SqliteStore(str(tmp_path / "file" / "state.db")))[0].holds()
    assert not await holder(RedisStore("redis://127.0.0.1:1/0"))[0].holds()
