"""Forgetting: complete, counted, and of nobody else."""

from __future__ import annotations

import pytest

from flowrt.storage.agents.protocol import Person, Place, Removed
from flowrt.testing.agent_memory_conformance.ids import fill
from flowrt.testing.agent_memory_conformance.suite import (
    NOTHING,
    Keeping,
    Suite,
    everything,
    in_a_loop,
    said,
)
from flowrt.testing.store_conformance.suite import opened


class ForgettingConformance(Suite):
    """`forget_user`."""

    @in_a_loop
    async def test_everything_of_a_person_goes_and_nothing_of_others(
        self, store: Keeping, service: str
    ) -> None:
        agents = store.agents()
        for agent in ("a", "b"):
            for user in ("u", "v"):
                for number in range(2):
                    thread = f"{user}{number}"
                    await fill(agents, Place(service, agent, thread, user), f"word{number}")
        await agents.append_turns(Place(service, "a", "nobody's"), said("x"))
        others = [Person(service, "a", "v"), Person(service, "b", "v"), Person(service, "a", "")]
        before = [await everything(agents, other) for other in others]
        receipt = Removed(threads=4, turns=8, facts=4, vectors=12)
        assert receipt == await agents.forget_user(service, "u", dry_run=True)
        assert receipt == await agents.forget_user(service, "u")
        for agent in ("a", "b"):
            assert await everything(agents, Person(service, agent, "u")) == NOTHING
            assert await agents.users(service, agent) == ["v"]
            assert await agents.thread(Place(service, agent, "u0")) is None
            assert await agents.fact(Person(service, agent, "u"), "word0") is None
        assert before == [await everything(agents, other) for other in others]
        assert Removed() == await agents.forget_user(service, "u")

    @in_a_loop
    async def test_a_person_may_be_forgotten_by_one_agent(
        self, store: Keeping, service: str
    ) -> None:
        agents = store.agents()
        for agent in ("a", "b"):
            await fill(agents, Place(service, agent, "t", "u"), "word")
        before = await everything(agents, Person(service, "b", "u"))
        receipt = Removed(threads=1, turns=2, facts=1, vectors=3)
        assert receipt == await agents.forget_user(service, "u", agent="a")
        assert await everything(agents, Person(service, "a", "u")) == NOTHING
        assert before == await everything(agents, Person(service, "b", "u"))
        assert Removed() == await agents.forget_user(service, "u", agent="c")

    @in_a_loop
    async def test_a_dry_run_counts_and_changes_nothing(self, store: Keeping, service: str) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        await fill(agents, Place(service, "a", "t", "u"), "word")
        before = await everything(agents, person), await agents.version(person)
        receipt = Removed(threads=1, turns=2, facts=1, vectors=3)
        for _ in range(2):
            assert receipt == await agents.forget_user(service, "u", dry_run=True)
        assert before == (await everything(agents, person), await agents.version(person))

    @in_a_loop
    async def test_more_than_any_page_is_forgotten(self, store: Keeping, service: str) -> None:
        """A default limit on a find is how forgetting is left half done (FB-70)."""
        agents, person = store.agents(), Person(service, "a", "u")
        for number in range(0, 12_000, 1000):
            texts = said(*(f"{number + at}" for at in range(1000)))
            await agents.append_turns(Place(service, "a", "long", "u"), texts)
        for number in range(600):
            await agents.touch(Place(service, "a", f"t{number}", "u"))
            await agents.put_fact(person, f"n{number}", "v", expect=0)
        receipt = await agents.forget_user(service, "u")
        assert Removed(threads=601, turns=12_000, facts=600) == receipt
        assert await everything(agents, person) == NOTHING

    @in_a_loop
    async def test_who_was_forgotten_starts_again_as_a_stranger(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        await fill(agents, place, "word")
        await agents.forget_user(service, "u")
        (turn,) = await agents.append_turns(place, said("again"))
        person = Person(service, "a", "u")
        await agents.put_fact(person, "word", "v", expect=0)
        fact = await agents.fact(person, "word")
        assert fact is not None
        info = await agents.thread(place)
        assert info is not None
        assert (turn.seq, fact.version, fact.earlier, info.title, info.turns) == (1, 1, (), "", 1)
        assert (await agents.vectors_of(Person(service, "a", "u"))).items == []

    @in_a_loop
    async def test_nobody_and_everybody_cannot_be_forgotten(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t")
        await agents.append_turns(place, said("nobody's"))
        for dry_run in (True, False):
            with pytest.raises(ValueError, match="user"):
                await agents.forget_user(service, "", dry_run=dry_run)
        assert len((await agents.turns(place)).items) == 1

    @in_a_loop
    async def test_it_is_forgotten_for_everybody_who_has_the_store_open(
        self, store: Keeping, service: str
    ) -> None:
        async with opened(self.another(store)) as other:
            agents, place = store.agents(), Place(service, "a", "t", "u")
            await fill(agents, place, "word")
            person = Person(service, "a", "u")
            assert await everything(other.agents(), person) != NOTHING
            await agents.forget_user(service, "u")
            assert await everything(other.agents(), person) == NOTHING
            assert await other.agents().version(person) == 0
