"""The version of a person: the same number, the same content."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

from flowrt.storage.agents.protocol import Person, Place
from flowrt.testing.agent_memory_conformance.suite import Keeping, Suite, in_a_loop, said, vector


class VersionConformance(Suite):
    """`version`."""

    @in_a_loop
    async def test_it_changes_with_every_change_and_never_comes_back(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        place, nobodys = Place(service, "a", "t", "u"), Place(service, "a", "t2")
        await agents.append_turns(nobodys, said("nobody's"))

        async def vectors() -> None:
            (fact,) = (await agents.facts(person)).items
            await agents.put_vectors(person, [vector("fact", fact.id, 1.0)])

        changes: list[Callable[[], Awaitable[Any]]] = [
            lambda: agents.append_turns(place, said("x")),
            lambda: agents.append_turns(place, said("x")),
            lambda: agents.put_fact(person, "n", "v", expect=0),
            lambda: agents.put_fact(person, "n", "w", expect=1),
            vectors,
            lambda: agents.append_turns(nobodys._replace(user="u"), said("y")),
            lambda: agents.delete_fact(person, "n"),
            lambda: agents.delete_thread(place),
            lambda: agents.delete_thread(nobodys),
            lambda: agents.append_turns(place, said("x")),
        ]
        assert await agents.version(person) == 0
        seen = [0]
        for _ in range(2):
            for change in changes:
                await change()
                seen.append(await agents.version(person))
            await agents.forget_user(service, "u")
            # What is forgotten is known no more, and nothing is known of strangers.
            assert await agents.version(person) == 0
            await agents.append_turns(nobodys, said("nobody's"))
        assert all(before != after for before, after in pairwise(seen)), seen
        # Of whom nothing is left, a store may know nothing: 0 is the one number that comes back.
        given = [number for number in seen if number]
        assert len(set(given)) == len(given), seen

    @in_a_loop
    async def test_it_stays_where_nothing_changes(self, store: Keeping, service: str) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        place = Place(service, "a", "t", "u")
        await agents.append_turns(place, said("x"))
        await agents.put_fact(person, "n", "v", expect=0)
        before = await agents.version(person)
        await agents.turns(place)
        await agents.facts(person)
        await agents.vectors_of(person)
        await agents.put_fact(person, "n", "v", expect=1)
        await agents.delete_fact(person, "other")
        await agents.delete_thread(place._replace(thread="other"))
        await agents.forget_user(service, "u", dry_run=True)
        for other in (Place(service, "a", "tv", "v"), Place(service, "b", "t", "u")):
            await agents.append_turns(other, said("x"))
            await agents.put_fact(Person(service, other.agent, other.user), "n", "v", expect=0)
        assert before == await agents.version(person)

    @in_a_loop
    async def test_it_changes_for_nobody_too_when_a_thread_becomes_somebodys(
        self, store: Keeping, service: str
    ) -> None:
        agents, nobody = store.agents(), Person(service, "a", "")
        await agents.append_turns(Place(service, "a", "t"), said("x"))
        before = await agents.version(nobody)
        await agents.touch(Place(service, "a", "t", "u"))
        assert before != await agents.version(nobody)
        assert await agents.version(Person(service, "a", "u")) != 0
