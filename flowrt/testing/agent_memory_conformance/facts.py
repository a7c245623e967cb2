"""Facts: versions, the values before, and where each came from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flowrt.storage.agents.protocol import Earlier, Person
from flowrt.testing.agent_memory_conformance.suite import Keeping, Suite, in_a_loop, vector
from flowrt.testing.agent_memory_conformance.turns import ODD_TEXTS
from flowrt.testing.store_conformance.suite import conflicts, failures


class FactConformance(Suite):
    """`facts`, `fact`, `put_fact`, `delete_fact`."""

    @in_a_loop
    async def test_a_fact_knows_its_turn_and_the_values_before(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        first = await agents.put_fact(person, "unit", "Celsius", expect=0, thread="t", seq=3)
        second = await agents.put_fact(person, "unit", "Kelvin", expect=1, thread="t2", seq=9)
        third = await agents.put_fact(person, "unit", "Celsius", expect=None)
        assert [
            (fact.value, fact.version, fact.thread, fact.seq) for fact in (first, second, third)
        ] == [("Celsius", 1, "t", 3), ("Kelvin", 2, "t2", 9), ("Celsius", 3, "", 0)]
        found = await agents.fact(person, "unit")
        assert found is not None
        assert third == replace(found, earlier=())
        assert (
            Earlier("Celsius", 1, "t", 3, first.updated),
            Earlier("Kelvin", 2, "t2", 9, second.updated),
        ) == found.earlier
        assert found.created == first.created <= found.updated

    @in_a_loop
    async def test_the_same_value_again_changes_nothing(self, store: Keeping, service: str) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        await agents.put_fact(person, "n", "older", expect=0)
        await agents.put_fact(person, "n", "v", expect=1, thread="t", seq=1)
        before = await agents.fact(person, "n")
        version = await agents.version(person)
        for expect in (2, None):
            again = await agents.put_fact(person, "n", "v", expect=expect, thread="t9", seq=9)
            assert before is not None
            assert replace(before, earlier=()) == again
        assert before == await agents.fact(person, "n")
        assert version == await agents.version(person)

    @in_a_loop
    async def test_a_write_on_another_version_conflicts_and_changes_nothing(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        errors = await failures(agents.put_fact(person, "n", "v", expect=1))
        assert conflicts(errors) == [("n", 1, 0)]
        assert await agents.fact(person, "n") is None
        before = await agents.put_fact(person, "n", "v", expect=0)
        errors = await failures(
            agents.put_fact(person, "n", "w", expect=0),
            agents.put_fact(person, "n", "w", expect=2),
            agents.put_fact(person, "n", "v", expect=0),
        )
        assert conflicts(errors) == [("n", 0, 1), ("n", 2, 1), ("n", 0, 1)]
        assert before == await agents.fact(person, "n")

    @in_a_loop
    async def test_a_deleted_fact_starts_again_without_a_past(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        first = await agents.put_fact(person, "n", "v", expect=0)
        await agents.put_fact(person, "n", "w", expect=1)
        assert await agents.delete_fact(person, "n") is True
        assert await agents.fact(person, "n") is None
        assert (await agents.facts(person)).items == []
        assert await agents.delete_fact(person, "n") is False
        again = await agents.put_fact(person, "n", "v", expect=0)
        assert (again.version, again.earlier) == (1, ())
        assert again == await agents.fact(person, "n")
        assert again.id > first.id

    @in_a_loop
    async def test_facts_are_listed_the_last_changed_first_without_the_values_before(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        for name in "pqr":
            await agents.put_fact(person, name, "v", expect=0)
        await agents.put_fact(person, "p", "w", expect=1)
        # Said again, but not changed.
        await agents.put_fact(person, "q", "v", expect=1)
        listed = (await agents.facts(person)).items
        assert [fact.name for fact in listed] == ["p", "r", "q"]
        whole = [await agents.fact(person, name) for name in "prq"]
        assert [fact and replace(fact, earlier=()) for fact in whole] == listed

    @in_a_loop
    async def test_an_id_belongs_to_one_value(self, store: Keeping, service: str) -> None:
        """A vector that is late, made of the value before, must not stand for the new one."""
        agents, person = store.agents(), Person(service, "a", "u")
        before = await agents.put_fact(person, "n", "v", expect=0)
        await agents.put_vectors(person, [vector("fact", before.id, 1.0)])
        after = await agents.put_fact(person, "n", "w", expect=1)
        assert before.id < after.id
        assert (await agents.vectors_of(person)).items == []
        await agents.put_vectors(person, [vector("fact", before.id, 1.0)])
        assert (await agents.vectors_of(person)).items == []
        assert after.id == (await agents.facts(person)).items[0].id

    @in_a_loop
    async def test_names_and_values_come_back_verbatim(self, store: Keeping, service: str) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        for text in ODD_TEXTS:
            name = f"{text[:10_000]}:"
            await agents.put_fact(person, name, "older", expect=0)
            await agents.put_fact(person, name, text, expect=1, thread=name, seq=2**40)
            found = await agents.fact(person, name)
            assert found is not None
            assert (name, text, name, 2**40) == (found.name, found.value, found.thread, found.seq)
        assert list(reversed(ODD_TEXTS)) == [
            fact.value for fact in (await agents.facts(person)).items
        ]

    @in_a_loop
    async def test_a_fact_about_nobody_is_refused(self, store: Keeping, service: str) -> None:
        agents = store.agents()
        with pytest.raises(ValueError, match="user"):
            await agents.put_fact(Person(service, "a", ""), "n", "v", expect=0)
        assert await agents.fact(Person(service, "a", ""), "n") is None
        assert await agents.agents(service) == []

    @in_a_loop
    async def test_different_facts_of_nearly_one_name_stay_two(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        names = ("allergic to nuts", "allergic to cats", "Allergic to nuts", "allergic to nuts ")
        for name in names:
            await agents.put_fact(person, name, "yes", expect=0)
        assert await agents.delete_fact(person, "allergic to nuts")
        left = [fact.name for fact in (await agents.facts(person)).items]
        assert list(reversed(names[1:])) == left
