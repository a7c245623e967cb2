"""What becomes of a lease while it is held: renewed, lost, or without its server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from flowrt.errors import ThreadBusy
from flowrt.storage.lease import hold
from flowrt.storage.tiers import Storage
from tests.redis_server import RedisServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.stop()


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until a condition holds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def test_who_does_not_wait_does_not_overtake_whose_turn_it_is() -> None:
    storage = Storage.from_urls("svc", "memory:", environ={})
    space = storage.space("user")
    order: list[str] = []

    async def wait() -> None:
        async with hold(space, "k"):
            order.append("waited")

    async with hold(space, "k"):
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    # Released, but not yet taken by the one who waited.
    with pytest.raises(ThreadBusy):
        async with hold(space, "k", wait=0):
            order.append("overtook")
    await waiting
    assert ["waited"] == order


async def test_the_original_cancellation_is_what_the_caller_sees(server: RedisServer) -> None:
    """FB-42: also where the release fails."""
    storage = Storage.from_urls("svc", server.url, environ={})
    inside = asyncio.Event()

    async def run() -> None:
        async with hold(storage.space("user"), "k"):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    await inside.wait()
    server.stop()
    task.cancel("the user left")
    with pytest.raises(asyncio.CancelledError, match="the user left"):
        await task
    await storage.close()


async def test_a_lock_file_that_is_removed_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = Storage.from_urls("svc", f"sqlite:{tmp_path}/state.db", environ={})
    lost = asyncio.Event()
    async with hold(storage.space("user"), "thread/t", ttl=0.03, on_lost=lost.set):
        (tmp_path / "state.db.lock").unlink()
        async with asyncio.timeout(10):
            await lost.wait()
    assert 1 == capsys.readouterr().err.count("a lease was lost")
    async with hold(storage.space("user"), "thread/t", wait=0):
        pass
    await storage.close()


async def test_a_lease_in_redis_is_renewed_while_it_is_held(redis_url: str) -> None:
    storage = Storage.from_urls("renewed", redis_url, environ={})
    name = "flowrt:{renewed/user}:lease:thread/t"
    with Redis.from_url(redis_url) as client:
        async with hold(storage.space("user"), "thread/t", ttl=0.9):
            for _ in range(2):
                # Only a renewal makes it short again.
                client.pexpire(name, 100_000)
                await until(lambda: client.pttl(name) <= 900)
            assert 0 < client.pttl(name)
        assert not client.exists(name)
    await storage.close()


async def test_a_lease_that_cannot_be_renewed_in_time_is_lost(
    server: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = Storage.from_urls("svc", server.url, environ={})
    lost = asyncio.Event()
    async with hold(storage.space("user"), "thread/t", ttl=0.3, on_lost=lost.set):
        server.stop()
        async with asyncio.timeout(10):
            await lost.wait()
    logged = capsys.readouterr().err
    assert "a lease was not renewed" in logged
    assert 1 == logged.count("a lease was lost")
    assert "a lease was not released" in logged
    await storage.close()


async def test_a_lease_survives_an_outage_that_is_shorter_than_itself(server: RedisServer) -> None:
    storage = Storage.from_urls("svc", server.url, environ={})
    async with hold(storage.space("user"), "thread/t", ttl=60) as lease:
        server.stop()
        server.start()
        await lease.renew()
    async with hold(storage.space("user"), "thread/t", wait=0):
        pass
    await storage.close()
