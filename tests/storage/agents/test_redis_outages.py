"""The record of agents in a Redis that is gone, restarted or hanging."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from flowrt.clock import SystemClock
from flowrt.errors import StoreUnavailable
from flowrt.storage import redis as redis_module
from flowrt.storage.agents.protocol import AgentStore, NewTurn, Person, Place, Vector
from flowrt.storage.memory import MemoryStore
from flowrt.storage.redis import RedisStore
from flowrt.storage.tiers import Storage
from flowrt.testing.store_conformance.suite import opened
from tests.redis_server import RedisServer
from tests.storage.test_redis_outages import Proxy, hides_the_password
from tests.storage.test_redis_outages import server as server

PLACE, PERSON = Place("s", "a", "t", "ann"), Person("s", "a", "ann")


def said(text: str) -> list[NewTurn]:
    return [NewTurn("user", text)]


def every_call(agents: AgentStore) -> list[Awaitable[Any]]:
    """One call of each method."""
    return [
        agents.append_turns(PLACE, said("lost")),
        agents.touch(PLACE),
        agents.turns(PLACE),
        agents.turns_of(PERSON),
        agents.thread(PLACE),
        agents.threads("s", "a"),
        agents.agents("s"),
        agents.users("s", "a"),
        agents.set_title(PLACE, "lost"),
        agents.delete_thread(PLACE),
        agents.facts(PERSON),
        agents.fact(PERSON, "n"),
        agents.put_fact(PERSON, "n", "lost", expect=None),
        agents.delete_fact(PERSON, "n"),
        agents.put_vectors(PERSON, [Vector("turn", 1, "m", b"1234")]),
        agents.vectors_of(PERSON),
        agents.forget_user("s", "ann"),
        agents.version(PERSON),
    ]


async def recorded(agents: AgentStore) -> list[str]:
    """What was said, having checked that the numbers have no gap."""
    turns = (await agents.turns(PLACE)).items
    assert list(range(1, len(turns) + 1)) == [turn.seq for turn in turns]
    return [turn.text for turn in turns]


async def test_a_redis_that_is_gone_fails_every_call_and_comes_back_with_everything(
    server: RedisServer,
) -> None:
    storage = Storage("s", RedisStore(server.url), MemoryStore())
    agents = storage.agents()
    (first,) = await agents.append_turns(PLACE, said("before"))
    await agents.put_fact(PERSON, "n", "v", expect=0)
    version = await agents.version(PERSON)
    server.stop()
    clock = SystemClock()
    began = clock.monotonic()
    for call in every_call(agents):
        with pytest.raises(StoreUnavailable) as caught:
            await call
        assert hides_the_password(str(caught.value))
    assert clock.monotonic() - began < 3
    server.start()
    assert version == await agents.version(PERSON)
    (second,) = await agents.append_turns(PLACE, said("after"))
    assert (2, True) == (second.seq, second.id > first.id)
    assert 2 == (await agents.put_fact(PERSON, "n", "w", expect=1)).version
    assert ["before", "after"] == await recorded(agents)
    await storage.close()


async def test_a_redis_that_is_missing_at_the_start_is_found_when_it_is_there(
    server: RedisServer,
) -> None:
    server.stop()
    storage = Storage("s", RedisStore(server.url), MemoryStore())
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await storage.agents().touch(PLACE)
    server.start()
    assert 1 == (await storage.agents().touch(PLACE)).version
    await storage.close()


async def test_a_restart_in_the_middle_loses_nothing_acknowledged_and_doubles_nothing(
    server: RedisServer,
) -> None:
    acknowledged: list[str] = []
    unsure: list[str] = []

    async def write(agents: AgentStore, name: str, enough: asyncio.Event) -> None:
        number = 0
        while not enough.is_set():
            number += 1
            try:
                await agents.append_turns(PLACE, said(f"{name} {number}"))
            except StoreUnavailable:
                unsure.append(f"{name} {number}")
            else:
                acknowledged.append(f"{name} {number}")

    async with opened(RedisStore(server.url)) as store:
        agents, enough = store.agents(), asyncio.Event()
        writers = [asyncio.create_task(write(agents, f"w{n}", enough)) for n in range(8)]
        for _ in range(2):
            await _until(acknowledged, len(acknowledged) + 100)
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start)
        await _until(acknowledged, len(acknowledged) + 100)
        enough.set()
        await asyncio.gather(*writers)
        found = await recorded_all(agents)
    assert unsure
    assert len(set(found)) == len(found)
    assert set(acknowledged) <= set(found) <= set(acknowledged) | set(unsure)


async def _until(acknowledged: list[str], count: int) -> None:
    while len(acknowledged) < count:
        await asyncio.sleep(0)


async def recorded_all(agents: AgentStore) -> list[str]:
    """The turns of the person, in the order of their ids: each numbered one on from the last."""
    turns = (await agents.turns_of(PERSON, limit=100_000)).items
    assert list(range(1, len(turns) + 1)) == [turn.seq for turn in turns]
    return [turn.text for turn in turns]


async def test_a_redis_that_hangs_is_given_up(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_module, "COMMAND_SECONDS", 0.2)
    async with opened(RedisStore(server.url)) as store:
        agents = store.agents()
        await agents.append_turns(PLACE, said("before"))
        assert server._process is not None
        os.kill(server._process.pid, signal.SIGSTOP)
        try:
            calls = (agents.append_turns(PLACE, said("perhaps")), agents.turns(PLACE))
            results = await asyncio.gather(*calls, return_exceptions=True)
        finally:
            os.kill(server._process.pid, signal.SIGCONT)
        assert [StoreUnavailable] * 2 == [type(result) for result in results]
        assert all("did not answer within" in str(result) for result in results)
        # Late answers are not taken for those of the next calls. What was given up may have
        # happened, once.
        await agents.append_turns(PLACE, said("after"))
        assert await recorded(agents) in (
            ["before", "perhaps", "after"],
            ["before", "after"],
        )


@asynccontextmanager
async def behind_a_proxy(server: RedisServer) -> AsyncIterator[tuple[Proxy, AgentStore]]:
    """The record over connections that lose answers on demand."""
    proxy = Proxy(server.port)
    async with (
        proxy.running() as port,
        opened(RedisStore(server.url.replace(f":{server.port}/", f":{port}/"))) as store,
    ):
        yield proxy, store.agents()


async def test_a_write_whose_answer_was_lost_is_reported_and_done_once(
    server: RedisServer,
) -> None:
    async with behind_a_proxy(server) as (proxy, agents):
        await agents.append_turns(PLACE, said("1"))
        await agents.put_fact(PERSON, "n", "1", expect=0)
        for write in (
            agents.append_turns(PLACE, said("2")),
            agents.put_fact(PERSON, "n", "2", expect=1),
        ):
            # Connects anew: it is not the answer to the password that is to be lost.
            await agents.version(PERSON)
            proxy.answers_to_lose = 1
            with pytest.raises(StoreUnavailable):
                await write
            assert 0 == proxy.answers_to_lose
        assert ["1", "2"] == await recorded(agents)
        fact = await agents.fact(PERSON, "n")
        assert fact is not None
        assert (2, ["1"]) == (fact.version, [was.value for was in fact.earlier])


async def test_a_read_whose_answer_was_lost_is_asked_again(server: RedisServer) -> None:
    async with behind_a_proxy(server) as (proxy, agents):
        await agents.append_turns(PLACE, said("1"))
        proxy.answers_to_lose = 1
        assert ["1"] == await recorded(agents)
        proxy.answers_to_lose = 1
        assert ["ann"] == await agents.users("s", "a")
        assert 0 == proxy.answers_to_lose
