"""Vectors: kept beside what they are of, gone with it."""

from __future__ import annotations

import pytest

from flowrt.storage.agents.protocol import Person, Place, Vector
from flowrt.testing.agent_memory_conformance.suite import (
    Keeping,
    Suite,
    in_a_loop,
    said,
    vector,
)


async def vectors_of(store: Keeping, person: Person) -> set[Vector]:
    """All of a person's, none twice."""
    found = (await store.agents().vectors_of(person)).items
    assert len(found) == len(set(found))
    return set(found)


class VectorConformance(Suite):
    """`put_vectors`, `vectors_of`."""

    @in_a_loop
    async def test_vectors_of_turns_and_facts_come_back_exactly(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        turns = await agents.append_turns(Place(*person[:2], "t", "u"), said("x", "y"))
        fact = await agents.put_fact(person, "n", "v", expect=0)
        given = {
            Vector("turn", turns[0].id, "model é", bytes(range(256))),
            Vector("turn", turns[1].id, "other", b"\0\0\xc0\x7f" * 1536),
            Vector("fact", fact.id, "model é", b"\0\r\n\xff"),
        }
        await agents.put_vectors(person, list(given))
        assert given == await vectors_of(store, person)
        assert {64, 1536, 1} == {one.size for one in given}

    @in_a_loop
    async def test_a_vector_goes_over_the_one_before(self, store: Keeping, service: str) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        (turn,) = await agents.append_turns(Place(service, "a", "t", "u"), said("x"))
        await agents.put_vectors(person, [vector("turn", turn.id, 1.0)])
        newer = Vector("turn", turn.id, "m2", bytes(16))
        await agents.put_vectors(person, [newer])
        assert {newer} == await vectors_of(store, person)
        last = [vector("turn", turn.id, 2.0), vector("turn", turn.id, 3.0)]
        await agents.put_vectors(person, last)
        assert {last[1]} == await vectors_of(store, person)

    @in_a_loop
    async def test_no_vector_is_kept_of_what_is_not_there_or_not_theirs(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        (mine,) = await agents.append_turns(Place(service, "a", "t", "u"), said("x"))
        (theirs,) = await agents.append_turns(Place(service, "a", "t2", "v"), said("x"))
        (elsewhere,) = await agents.append_turns(Place(service, "b", "t", "u"), said("x"))
        fact = await agents.put_fact(Person(service, "a", "v"), "n", "v", expect=0)
        before = await agents.version(person)
        await agents.put_vectors(
            person,
            [
                vector("turn", theirs.id, 1.0),
                vector("turn", elsewhere.id, 1.0),
                vector("turn", elsewhere.id + 1_000_000, 1.0),
                vector("fact", fact.id, 1.0),
            ],
        )
        await agents.put_vectors(Person(service, "a", "stranger"), [vector("turn", mine.id, 1.0)])
        await agents.put_vectors(Person(service, "a", ""), [vector("turn", mine.id, 1.0)])
        for agent, user in (("a", "u"), ("a", "v"), ("b", "u"), ("a", "stranger"), ("a", "")):
            assert set() == await vectors_of(store, Person(service, agent, user))
        assert before == await agents.version(person)

    @in_a_loop
    async def test_a_vector_goes_with_its_fact(self, store: Keeping, service: str) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        one = await agents.put_fact(person, "one", "v", expect=0)
        two = await agents.put_fact(person, "two", "v", expect=0)
        kept = vector("fact", two.id, 2.0)
        await agents.put_vectors(person, [vector("fact", one.id, 1.0), kept])
        await agents.delete_fact(person, "one")
        assert {kept} == await vectors_of(store, person)

    @in_a_loop
    async def test_vectors_follow_a_thread_to_its_user(self, store: Keeping, service: str) -> None:
        agents, thread = store.agents(), Place(service, "a", "t")
        nobody, person = Person(service, "a", ""), Person(service, "a", "u")
        (turn,) = await agents.append_turns(thread, said("x"))
        made = vector("turn", turn.id, 1.0)
        await agents.put_vectors(nobody, [made])
        assert {made} == await vectors_of(store, nobody)
        await agents.append_turns(thread._replace(user="u"), said("y"))
        assert (set(), {made}) == (
            await vectors_of(store, nobody),
            await vectors_of(store, person),
        )

    @in_a_loop
    async def test_what_is_no_row_of_float32_is_refused_and_nothing_is_kept(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        (turn,) = await agents.append_turns(Place(service, "a", "t", "u"), said("x"))
        for data in (b"", b"abc", b"abcde"):
            with pytest.raises(ValueError, match="bytes"):
                await agents.put_vectors(
                    person, [vector("turn", turn.id, 1.0), Vector("turn", turn.id, "m", data)]
                )
        assert set() == await vectors_of(store, person)
