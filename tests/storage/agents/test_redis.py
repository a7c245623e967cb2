"""The record of agents in Redis."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest
from redis.asyncio import Redis

from flowrt.errors import StoreError
from flowrt.ids import new_id
from flowrt.storage.agents.protocol import AgentStore, NewTurn, Person, Place, Removed, Vector
from flowrt.storage.redis import RedisStore
from flowrt.testing.agent_memory_conformance import AgentMemoryConformance, Keeping
from flowrt.testing.store_conformance.suite import opened
from tests.redis_server import RedisServer
from tests.storage.test_redis import by_hand
from tests.storage.test_redis_outages import server as server

TURNS = [NewTurn("user", "where is my parcel?", 5), NewTurn("assistant", "on its way", 3)]


class TestRedisAgentStore(AgentMemoryConformance):
    @pytest.fixture
    def store(self, redis_url: str) -> Keeping:
        self.url = redis_url
        return RedisStore(redis_url)

    def another(self, store: Keeping) -> Keeping:
        return RedisStore(self.url)


@pytest.fixture
def place() -> Place:
    return Place(f"test-{new_id()}", "support", "thread", "ann")


async def names(client: Redis) -> set[bytes]:
    """The keys of a database."""
    return {name async for name in client.scan_iter(count=1000)}


async def fill(agents: AgentStore, place: Place) -> None:
    """Some of everything about one person."""
    person = Person(place.service, place.agent, place.user)
    for thread in ("one", "two"):
        turns = await agents.append_turns(place._replace(thread=thread), TURNS)
        await agents.put_vectors(person, [Vector("turn", turns[0].id, "m", b"1234")])
    for value in ("blue", "red"):
        fact = await agents.put_fact(person, "colour", value, expect=None, thread="one", seq=1)
    await agents.put_vectors(person, [Vector("fact", fact.id, "m", b"1234")])


@pytest.mark.parametrize("user", ["ann", "a%:nn*?[x]", "\0 \ud800", "ann:facts"])
async def test_of_a_person_who_is_forgotten_no_key_is_left(server: RedisServer, user: str) -> None:
    place = Place("a:service", "an:agent", "t", user)
    async with opened(RedisStore(server.url)) as store, by_hand(server.url) as client:
        agents = store.agents()
        await fill(agents, place)
        assert len(await names(client)) > 10
        assert Removed(2, 4, 1, 3) == await agents.forget_user(place.service, user)
        assert {b"flowrt:{agents}:last"} == await names(client)


async def test_of_what_is_removed_piece_by_piece_no_key_is_left(server: RedisServer) -> None:
    place = Place("s", "a", "t", "ann")
    async with opened(RedisStore(server.url)) as store, by_hand(server.url) as client:
        agents = store.agents()
        await fill(agents, place)
        for thread in ("one", "two"):
            await agents.delete_thread(place._replace(thread=thread))
        assert await agents.delete_fact(Person("s", "a", "ann"), "colour")
        assert {b"flowrt:{agents}:last"} == await names(client)


async def test_the_append_only_file_does_not_keep_who_is_forgotten(
    server: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "the-word-nobody-says"
    users = [f"user {number}" for number in range(6)]

    def kept() -> bool:
        """Asked of grep: the server makes and removes files meanwhile."""
        found = subprocess.run(["grep", "-rqs", secret, str(tmp_path)], check=False)
        return found.returncode == 0

    async with opened(RedisStore(server.url)) as store, by_hand(server.url) as client:
        agents = store.agents()
        for user in users:
            await agents.append_turns(Place("s", "a", user, user), [NewTurn("user", secret)])
            await agents.put_fact(Person("s", "a", user), "word", secret, expect=0)
        await agents.forget_user("s", users[0], dry_run=True)
        assert kept()
        # All at once: a rewrite that began before somebody's removal does not do for them.
        await asyncio.gather(*(agents.forget_user("s", user) for user in users))
        while (await client.info("persistence"))["aof_rewrite_in_progress"]:
            await asyncio.sleep(0)
        for _ in range(100):
            if not kept():
                break
    assert not kept()
    assert "" == capsys.readouterr().err


async def test_who_may_not_rewrite_the_file_is_told_that_it_keeps_what_was_forgotten(
    server: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    async with by_hand(server.url) as client:
        limited = ("on", ">limited-word", "~flowrt:*", "+@all", "-bgrewriteaof")
        await client.execute_command("ACL", "SETUSER", "limited", *limited)
    async with opened(
        RedisStore(f"redis://limited:limited-word@127.0.0.1:{server.port}/0")
    ) as store:
        await store.agents().append_turns(Place("s", "a", "t", "ann"), TURNS)
        assert Removed(threads=1, turns=2) == await store.agents().forget_user("s", "ann")
    (line,) = capsys.readouterr().err.splitlines()
    assert "in the append-only file of Redis until BGREWRITEAOF" in line
    assert "limited-word" not in line


async def test_a_full_redis_records_nothing_by_halves_and_removes(server: RedisServer) -> None:
    place = Place("s", "a", "one", "ann")
    person = Person("s", "a", "ann")
    nobody = Place("s", "a", "nobody's")
    async with opened(RedisStore(server.url)) as store, by_hand(server.url) as client:
        agents = store.agents()
        await fill(agents, place)
        await agents.append_turns(nobody, TURNS)
        versions = [await agents.version(person)]
        before = (await agents.threads("s", "a"), await agents.turns_of(person))
        await client.config_set("maxmemory", "1")
        for work in (
            agents.append_turns(place, TURNS),
            agents.append_turns(nobody._replace(user="ann"), TURNS),
            agents.touch(place._replace(thread="new")),
            agents.set_title(place, "title"),
            agents.put_fact(person, "colour", "green", expect=2),
            agents.put_fact(person, "new", "value", expect=0),
            agents.put_vectors(person, [Vector("turn", before[1].items[1].id, "m", b"1234")]),
        ):
            with pytest.raises(StoreError, match=r"refused: .*used memory > 'maxmemory'"):
                await work
            assert versions == [await agents.version(person)]
        assert before == (await agents.threads("s", "a"), await agents.turns_of(person))
        # What makes room works, and shows in the version each time.
        assert Removed(threads=1, turns=2, vectors=1) == await agents.delete_thread(place)
        versions.append(await agents.version(person))
        assert await agents.delete_fact(person, "colour")
        versions.append(await agents.version(person))
        assert Removed(threads=1, turns=2, vectors=1) == await agents.forget_user("s", "ann")
        versions.append(await agents.version(person))
        await client.config_set("maxmemory", "0")
        await agents.append_turns(place, TURNS)
        versions.append(await agents.version(person))
    assert 5 == len(set(versions))


async def test_a_turn_costs_its_text_and_little_more(server: RedisServer) -> None:
    text = "x" * 200
    async with opened(RedisStore(server.url)) as store, by_hand(server.url) as client:
        turns = [NewTurn("user", text, 50), NewTurn("assistant", text, 50)]
        for thread in range(20):
            for _ in range(100):
                await store.agents().append_turns(Place("s", "a", f"t{thread}", "u"), turns)
        used = 0
        for name in await names(client):
            used += await client.memory_usage(name, samples=0) or 0
    # Measured on Valkey 8.1: 134 bytes, listings included.
    assert used / 4000 - len(text) < 150


async def test_a_long_thread_is_appended_to_and_read_as_fast_as_a_short_one(
    redis_url: str, place: Place
) -> None:
    async with opened(RedisStore(redis_url)) as store, by_hand(redis_url) as client:
        agents = store.agents()
        await agents.append_turns(place, [NewTurn("user", f"{n}") for n in range(20_000)])
        await client.config_resetstat()
        await agents.append_turns(place, TURNS)
        page = await agents.turns(place, limit=2, newest_first=True)
        sent = (await client.info("stats"))["total_net_output_bytes"]
    assert [turn.text for turn in page.items] == [turn.text for turn in reversed(TURNS)]
    assert sent < 2000


async def test_scripts_that_the_server_forgot_are_loaded_again(
    redis_url: str, place: Place
) -> None:
    async with opened(RedisStore(redis_url)) as store, by_hand(redis_url) as client:
        await store.agents().append_turns(place, TURNS)
        await client.script_flush()
        (turn, _) = await store.agents().append_turns(place, TURNS)
    assert 3 == turn.seq


async def test_two_databases_of_one_server_are_two_records(redis_url: str, place: Place) -> None:
    other_url = redis_url.removesuffix("/0") + "/1"
    async with opened(RedisStore(redis_url)) as one, opened(RedisStore(other_url)) as other:
        await one.agents().append_turns(place, TURNS)
        assert await other.agents().thread(place) is None
        assert [] == await other.agents().agents(place.service)


async def test_the_record_closes_with_its_store(redis_url: str, place: Place) -> None:
    store = RedisStore(redis_url)
    agents = store.agents()
    with pytest.raises(StoreError, match="is not open"):
        await agents.touch(place)
    async with opened(store):
        await asyncio.gather(*(agents.append_turns(place, TURNS) for _ in range(100)))
        info = await agents.thread(place)
        assert info is not None
        assert (200, 100) == (info.turns, info.version)
    with pytest.raises(StoreError, match="is not open"):
        await agents.touch(place)
