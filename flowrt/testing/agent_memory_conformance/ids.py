"""Ids: each is only itself, and nobody sees what is another's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations

from flowrt.storage.agents.protocol import AgentStore, Person, Place, Removed
from flowrt.testing.agent_memory_conformance.suite import (
    NOTHING,
    Keeping,
    Suite,
    everything,
    in_a_loop,
    person_of,
    said,
    texts,
    vector,
)
from flowrt.testing.store_conformance.values import ODD_KEYS

ODD_IDS = (
    *ODD_KEYS,
    "a",
    "A",
    "a ",
    " a",
    "a\0",
    "a%",
    "a_",
    "a*",
    "aa",
    "a:",
    "a/",
    "%61",
    "%2561",
    "\uff41",
    "\u00c5",
    "\u212b",
    "A\u030a",
    "ss",
    "ß",
    "i",
    "\u0130",
    "1",
    "01",
    "1.0",
    "null",
    "\U0001f600\u200d",
)
"""Ids that look like each other to a collation, a pattern, a separator or a number."""


class IdConformance(Suite):
    """Services, agents, threads, users and names of facts, compared exactly."""

    @in_a_loop
    async def test_every_thread_is_only_itself(self, store: Keeping, service: str) -> None:
        agents = store.agents()
        await each_alone(agents, (Place(service, "a", name, "u") for name in ODD_IDS))
        assert len(ODD_IDS) == len((await agents.threads(service, "a", limit=500)).items)
        for name in ODD_IDS:
            place = Place(service, "a", name, "u")
            assert Removed(threads=1, turns=1) == await agents.delete_thread(place)
            assert await agents.thread(place) is None

    @in_a_loop
    async def test_every_user_is_only_themselves(self, store: Keeping, service: str) -> None:
        agents = store.agents()
        for name in ODD_IDS:
            await agents.touch(Place(service, "b", name, name))
        assert sorted(ODD_IDS) == await agents.users(service, "b")
        await each_person_alone(
            agents, (Place(service, "a", f"t{at}", name) for at, name in _odd())
        )
        assert sorted(ODD_IDS[1::2]) == await agents.users(service, "a")

    @in_a_loop
    async def test_every_agent_is_only_itself(self, store: Keeping, service: str) -> None:
        agents = store.agents()
        for name in ODD_IDS:
            await agents.touch(Place(f"{service}2", name, "t", "u"))
        assert sorted(ODD_IDS) == await agents.agents(f"{service}2")
        await each_person_alone(agents, (Place(service, name, "t", "u") for name in ODD_IDS))
        assert sorted(ODD_IDS[1::2]) == await agents.agents(service)

    @in_a_loop
    async def test_every_service_is_only_itself(self, store: Keeping, service: str) -> None:
        places = [Place(f"{service}{name}", "a", "t", "u") for name in ODD_IDS]
        await each_person_alone(store.agents(), places)

    @in_a_loop
    async def test_every_fact_is_only_itself(self, store: Keeping, service: str) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        for at, name in _odd():
            assert await agents.fact(person, name) is None
            await agents.put_fact(person, name, f"{at}", expect=0)
        for at, name in _odd():
            found = await agents.fact(person, name)
            assert found is not None
            assert (name, f"{at}") == (found.name, found.value)
        for _, name in _odd():
            assert await agents.delete_fact(person, name)
            assert await agents.fact(person, name) is None

    @in_a_loop
    async def test_no_separator_moves_an_id_into_the_next(
        self, store: Keeping, service: str
    ) -> None:
        agents = store.agents()
        for at, mark in enumerate(("/", ":", "\0", "%", " ", "|", "\n", "\x1f")):
            halves = ("p", f"q{mark}p", f"q{mark}p{mark}q", mark, f"p{mark}")
            triples = list(permutations(halves, 3))
            await each_alone(
                agents,
                (Place(f"{service}{at}{one}", two, three, "u") for one, two, three in triples),
            )
            for agent, user, name in triples:
                person = Person(f"{service}{at}", agent, user)
                await agents.put_fact(person, name, f"{agent}, {user}, {name}", expect=0)
            for agent, user, name in triples:
                fact = await agents.fact(Person(f"{service}{at}", agent, user), name)
                assert fact is not None
                assert f"{agent}, {user}, {name}" == fact.value

    @in_a_loop
    async def test_nobody_sees_what_is_anothers(self, store: Keeping, service: str) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        await fill(agents, place, "secret")
        before = await everything(agents, person_of(place))
        for user in ("v", "U", "u ", "%", "*", "_", "u%", "", "\0"):
            other = Person(service, "a", user)
            assert await everything(agents, other) == NOTHING
            assert await agents.fact(other, "secret") is None
            assert await agents.delete_fact(other, "secret") is False
            assert await agents.version(other) == 0
            if not user:
                continue
            asked = place._replace(user=user)
            assert await agents.thread(asked) is None
            assert (await agents.turns(asked)).items == []
            assert (await agents.turns(asked, newest_first=True)).items == []
            await agents.set_title(asked, "mine now")
            assert Removed() == await agents.delete_thread(asked)
            assert Removed() == await agents.forget_user(service, user)
        assert before == await everything(agents, person_of(place))

    @in_a_loop
    async def test_a_user_is_another_one_with_each_agent_and_service(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        await fill(agents, place, "secret")
        before = await everything(agents, person_of(place))
        for other in (Person(service, "b", "u"), Person(f"{service}2", "a", "u")):
            assert await everything(agents, other) == NOTHING
            assert await agents.delete_fact(other, "secret") is False
            assert Removed() == await agents.delete_thread(Place(*other[:2], "t", "u"))
            forgotten = await agents.forget_user(other.service, "u", agent=other.agent)
            assert Removed() == forgotten
        assert before == await everything(agents, person_of(place))


def _odd() -> Iterator[tuple[int, str]]:
    return enumerate(ODD_IDS)


async def fill(agents: AgentStore, place: Place, word: str) -> None:
    """A thread with two turns, a fact that has changed once, and a vector of each."""
    person = person_of(place)
    turns = await agents.append_turns(place, said(f"{word} one", f"{word} two"))
    await agents.set_title(place, f"{word} title")
    await agents.put_fact(person, word, f"{word} old", expect=0, thread=place.thread, seq=1)
    fact = await agents.put_fact(person, word, f"{word} new", expect=1, thread=place.thread, seq=2)
    vectors = [vector("turn", turn.id, 1.0, 2.0) for turn in turns]
    await agents.put_vectors(person, [*vectors, vector("fact", fact.id, 3.0, 4.0)])


async def each_alone(agents: AgentStore, places: Iterable[Place]) -> None:
    """Write to each place, then find in each what was written there and nothing else."""
    written = list(places)
    for at, place in enumerate(written):
        assert await agents.thread(place) is None
        await agents.append_turns(place, said(f"{at}"))
        await agents.set_title(place, f"title {at}")
    for at, place in enumerate(written):
        assert [f"{at}"] == texts((await agents.turns(place)).items)
        info = await agents.thread(place)
        assert info is not None
        found = (info.agent, info.thread, info.user, info.title, info.turns)
        assert (*place[1:], f"title {at}", 1) == found


async def each_person_alone(agents: AgentStore, places: Iterable[Place]) -> None:
    """The same for places of a person each, whose other things are theirs alone too."""
    written = list(places)
    await each_alone(agents, written)
    for at, place in enumerate(written):
        fact = await agents.put_fact(person_of(place), "n", f"{at}", expect=0)
        await agents.put_vectors(person_of(place), [vector("fact", fact.id, float(at))])
    for at, place in enumerate(written):
        person = person_of(place)
        threads, turns, facts, _, vectors = await everything(agents, person)
        assert [place.thread] == [info.thread for info in threads]
        assert [f"{at}"] == texts(turns)
        assert [f"{at}"] == [fact.value for fact in facts]
        assert [vector("fact", facts[0].id, float(at))] == vectors
    for place in written[::2]:
        gone = await agents.forget_user(place.service, place.user, agent=place.agent)
        assert Removed(threads=1, turns=1, facts=1, vectors=1) == gone
    for at, place in enumerate(written):
        assert (await everything(agents, person_of(place)) == NOTHING) is (at % 2 == 0)
