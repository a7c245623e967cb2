"""A Redis of the volatile tier may drop any key at any time: what is left is never another's."""

from __future__ import annotations

from flowrt.storage.agents.protocol import AgentStore, Person, Place
from flowrt.storage.redis import RedisStore
from flowrt.testing.agent_memory_conformance.suite import everything, said, texts, vector
from flowrt.testing.store_conformance.suite import opened
from tests.redis_server import RedisServer
from tests.storage.agents.test_redis import names
from tests.storage.agents.test_redis import server as server
from tests.storage.test_redis import by_hand

WORDS = {"u": "Powidl", "v": "Quitte"}
PEOPLE = {user: Person("s", "a", user) for user in WORDS}


async def talk(agents: AgentStore) -> None:
    """Two threads of each of two people, and vectors. Facts are never in a volatile tier."""
    for user, word in WORDS.items():
        for number in range(2):
            turns = await agents.append_turns(
                Place("s", "a", f"{user}{number}", user), said(f"{word} one", f"{word} two")
            )
            vectors = [vector("turn", turn.id, 1.0, 2.0) for turn in turns]
            await agents.put_vectors(PEOPLE[user], vectors)


async def use(agents: AgentStore) -> None:
    """Everything that reads and writes, of both people: each finds what is theirs and it alone."""
    for user, word in WORDS.items():
        other = next(text for name, text in WORDS.items() if name != user)
        for number in range(3):
            place = Place("s", "a", f"{user}{number}", user)
            (turn,) = await agents.append_turns(place, said(f"{word} more"))
            assert ["a"] == await agents.agents("s")
            assert user in await agents.users("s", "a")
            info = await agents.thread(place)
            assert info is not None
            assert (user, turn.seq) == (info.user, info.turns)
            page = await agents.turns(place, limit=100)
            assert f"{word} more" == page.items[-1].text
            assert list(range(1, info.turns + 1)) == [each.seq for each in page.items]
        found = repr(await everything(agents, PEOPLE[user]))
        assert other not in found
        turns = (await agents.turns_of(PEOPLE[user], limit=2)).items
        assert 2 == len(turns)
        every = (await agents.turns_of(PEOPLE[user], limit=1000)).items
        assert 3 <= texts(every).count(f"{word} more")
        listed = (await agents.threads("s", "a", user=user)).items
        assert {f"{user}{number}" for number in range(3)} <= {each.thread for each in listed}
        await agents.set_title(Place("s", "a", f"{user}0", user), "x")
        await agents.delete_thread(Place("s", "a", f"{user}1", user))


async def test_whichever_key_is_dropped_nobody_sees_what_is_anothers(server: RedisServer) -> None:
    """FB-47."""
    async with opened(RedisStore(server.url)) as store, by_hand(server.url) as client:
        agents = store.agents()
        await talk(agents)
        keys = sorted(await names(client))
        for key in keys:
            await client.flushdb()
            await talk(agents)
            assert await client.delete(key), key
            try:
                await use(agents)
                for user in WORDS:
                    await agents.forget_user("s", user)
                    assert not (await agents.threads("s", "a", user=user)).items
            except Exception as error:
                raise AssertionError(f"without {key!r}") from error


async def test_whichever_key_is_dropped_who_is_forgotten_is_gone(server: RedisServer) -> None:
    """FB-70."""
    async with opened(RedisStore(server.url)) as store, by_hand(server.url) as client:
        await client.config_set("rdbcompression", "no")
        agents = store.agents()
        await talk(agents)
        for key in sorted(await names(client)):
            await client.flushdb()
            await talk(agents)
            assert await client.delete(key), key
            # Named: which agents there are may be what was dropped.
            await agents.forget_user("s", "u", agent="a")
            left = {name: await client.dump(name) for name in await names(client)}
            assert [] == [name for name, value in left.items() if b"Powidl" in value], key
            assert [] == (await agents.threads("s", "a", user="u")).items
