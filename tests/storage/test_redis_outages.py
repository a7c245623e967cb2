"""A Redis that is gone, full, hanging, or set up so that it may lose data."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from flowrt.clock import SystemClock
from flowrt.errors import StoreError, StoreUnavailable
from flowrt.storage import redis as redis_module
from flowrt.storage.memory import MemoryStore
from flowrt.storage.protocol import Log, Stored
from flowrt.storage.redis import RedisStore
from flowrt.storage.tiers import Storage
from flowrt.testing.store_conformance.suite import opened
from tests.redis_server import PASSWORD, RedisServer
from tests.storage.test_redis import by_hand

SPACE = "test/user"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server of this test's own."""
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.stop()


def hides_the_password(text: str) -> bool:
    """Whether a text shows no part of the password, plain or encoded."""
    parts = [PASSWORD, "p@ss", "p%40ss", "w/o", "w%2Fo", "r[d]"]
    return "[redacted]" in text and not any(part in text for part in parts)


async def test_a_closed_port_is_an_error_at_once_that_names_the_url(server: RedisServer) -> None:
    server.stop()
    store = RedisStore(server.url)
    clock = SystemClock()
    before = clock.monotonic()
    with pytest.raises(StoreUnavailable) as caught:
        await store.open()
    assert clock.monotonic() - before < 1
    text = str(caught.value)
    assert f"redis://:[redacted]@127.0.0.1:{server.port}/0 cannot be reached" in text
    assert hides_the_password(text)
    await store.close()


async def test_a_wrong_password_is_an_error_that_shows_neither(server: RedisServer) -> None:
    wrong = RedisStore(f"redis://:not-{PASSWORD[:2]}-the-word@127.0.0.1:{server.port}/0")
    with pytest.raises(StoreError) as caught:
        await wrong.open()
    assert "the-word" not in str(caught.value)
    assert f"127.0.0.1:{server.port}" in str(caught.value)


async def test_a_redis_that_comes_back_is_used_again_without_a_restart(
    server: RedisServer,
) -> None:
    space = Storage("test", RedisStore(server.url), MemoryStore()).space("user")
    await space.append("log", [b"before"])
    lease = await space.try_lease("log", ttl=600)
    assert lease is not None
    server.stop()
    clock = SystemClock()
    before = clock.monotonic()
    for work in (
        space.append("log", [b"lost"]),
        space.read_log("log"),
        space.set("k", 1),
        space.scan(),
        space.try_lease("k", ttl=1),
        lease.renew(),
    ):
        with pytest.raises(StoreUnavailable) as caught:
            await work
        assert hides_the_password(str(caught.value))
    assert clock.monotonic() - before < 3
    server.start()
    await lease.renew()
    assert 2 == await space.append("log", [b"after"], expect=1)
    assert Log(None, [b"before", b"after"], 2, 1) == await space.read_log("log")
    await space._tier.close()


async def test_a_store_that_was_missing_at_the_start_is_found_when_it_is_there(
    server: RedisServer,
) -> None:
    server.stop()
    storage = Storage("test", RedisStore(server.url), MemoryStore())
    space = storage.space("user")
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await space.get("k")
    server.start()
    assert 1 == await space.set("k", "v")
    await storage.close()


async def test_connections_that_died_idle_cost_no_write(server: RedisServer) -> None:
    async with opened(RedisStore(server.url)) as store:
        await asyncio.gather(*(store.set(SPACE, f"k{n}", n) for n in range(20)))
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        results = await asyncio.gather(*(store.append(SPACE, f"log{n}", [b"x"]) for n in range(40)))
    assert [1] * 40 == results


async def test_a_full_redis_refuses_writes_with_its_reason_and_reads_on(
    server: RedisServer,
) -> None:
    async with opened(RedisStore(server.url)) as store, by_hand(server.url) as client:
        await store.append(SPACE, "log", [b"x" * 10_000])
        await client.config_set("maxmemory", "1mb")
        await client.config_set("maxmemory-policy", "noeviction")
        for work in (store.append(SPACE, "log", [b"y"]), store.set(SPACE, "k", 1)):
            with pytest.raises(StoreError, match=r"refused: .*used memory > 'maxmemory'") as caught:
                await work
            assert not isinstance(caught.value, StoreUnavailable)
            assert hides_the_password(str(caught.value))
        assert Log(None, [b"x" * 10_000], 1, 1) == await store.read_log(SPACE, "log")
        # What makes room works: a compaction, a deletion.
        assert 2 == await store.rewrite(SPACE, "log", [b"sum"])
        assert Log(None, [b"sum"], 2, 2) == await store.read_log(SPACE, "log")
        assert await store.delete(SPACE, "log") is True
        await client.config_set("maxmemory", "0")
        assert 1 == await store.append(SPACE, "log", [b"y"], expect=0)


async def test_a_redis_that_hangs_is_given_up(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_module, "COMMAND_SECONDS", 0.2)
    async with opened(RedisStore(server.url)) as store:
        await store.set(SPACE, "k", "v")
        assert server._process is not None
        os.kill(server._process.pid, signal.SIGSTOP)
        try:
            calls = (store.get(SPACE, "k"), store.set(SPACE, "k", "w"))
            results = await asyncio.gather(*calls, return_exceptions=True)
        finally:
            os.kill(server._process.pid, signal.SIGCONT)
        assert [StoreUnavailable] * 2 == [type(result) for result in results]
        for result in results:
            assert f"127.0.0.1:{server.port}/0 did not answer within" in str(result)
        # Late answers are not taken for those of the next commands.
        await store.set(SPACE, "other", "o")
        assert Stored("o", 1) == await store.get(SPACE, "other")


async def warnings_at_open(store: RedisStore, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that opening and using a store leaves."""
    capsys.readouterr()
    async with opened(store):
        await store.set(SPACE, "k", 1)
        await store.get(SPACE, "k")
    return capsys.readouterr().err.splitlines()


async def test_a_redis_that_may_drop_keys_is_one_clear_warning(
    server: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [] == await warnings_at_open(RedisStore(server.url), capsys)
    async with by_hand(server.url) as client:
        await client.config_set("maxmemory-policy", "allkeys-lru")
        (line,) = await warnings_at_open(RedisStore(server.url), capsys)
        assert "maxmemory-policy is allkeys-lru" in line
        assert "appendonly" not in line
        await client.config_set("appendonly", "no")
        (line,) = await warnings_at_open(RedisStore(server.url), capsys)
        assert "maxmemory-policy is allkeys-lru" in line
        assert "neither appendonly nor save is set" in line
        assert hides_the_password(line)
        await client.config_set("maxmemory-policy", "noeviction")
        await client.config_set("save", "60 1")
        assert [] == await warnings_at_open(RedisStore(server.url), capsys)


async def test_a_volatile_redis_may_drop_keys_without_a_word(
    server: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    async with by_hand(server.url) as client:
        await client.config_set("maxmemory-policy", "allkeys-lru")
    assert [] == await warnings_at_open(RedisStore(server.url, durable=False), capsys)


async def test_a_redis_that_hides_its_settings_says_that_it_was_not_checked(
    server: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    async with by_hand(server.url) as client:
        await client.execute_command(
            "ACL", "SETUSER", "limited", "on", ">limited-word", "~flowrt:*", "+@all", "-config"
        )
    url = f"redis://limited:limited-word@127.0.0.1:{server.port}/0"
    (line,) = await warnings_at_open(RedisStore(url), capsys)
    assert "could not be checked" in line
    assert "limited-word" not in line


class Proxy:
    """Passes bytes to a server and back, and on demand cuts a connection before an answer."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self.answers_to_lose = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[int]:
        """Listen; gives the port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for writer in self._writers:
                writer.close()
            await asyncio.gather(*(w.wait_closed() for w in self._writers), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, up_writer}
        await asyncio.gather(self._pass(reader, up_writer), self._answer(up_reader, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self.answers_to_lose:
                self.answers_to_lose -= 1
                break
            writer.write(data)
        writer.close()


async def test_a_write_whose_answer_was_lost_is_reported_and_done_once(
    server: RedisServer,
) -> None:
    proxy = Proxy(server.port)
    async with (
        proxy.running() as port,
        opened(RedisStore(server.url.replace(f":{server.port}/", f":{port}/"))) as store,
    ):
        await store.append(SPACE, "log", [b"1"])
        proxy.answers_to_lose = 1
        with pytest.raises(StoreUnavailable):
            await store.append(SPACE, "log", [b"2"])
        assert 0 == proxy.answers_to_lose
        assert Log(None, [b"1", b"2"], 2, 1) == await store.read_log(SPACE, "log")


async def test_what_may_be_asked_twice_is_asked_again_when_its_answer_was_lost(
    server: RedisServer,
) -> None:
    proxy = Proxy(server.port)
    async with (
        proxy.running() as port,
        opened(RedisStore(server.url.replace(f":{server.port}/", f":{port}/"))) as store,
    ):
        await store.append(SPACE, "log", [b"1"])
        proxy.answers_to_lose = 1
        assert Log(None, [b"1"], 1, 1) == await store.read_log(SPACE, "log")
        proxy.answers_to_lose = 1
        lease = await store.try_lease(SPACE, "k", ttl=600)
        # The claim had arrived; the second finds its own token and not a stranger's.
        assert lease is not None
        assert await store.try_lease(SPACE, "k", ttl=600) is None
        proxy.answers_to_lose = 1
        await lease.renew()
        proxy.answers_to_lose = 1
        await lease.release()
        assert await store.try_lease(SPACE, "k", ttl=600) is not None
        assert 0 == proxy.answers_to_lose
