"""Epochs, and the parts of search indexes that are valid in them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from flowrt.storage.agents.protocol import AgentStore, IndexPart, Person, Place
from flowrt.testing.agent_memory_conformance.suite import Keeping, Suite, in_a_loop, said, vector


async def _kept(agents: AgentStore, person: Person) -> list[IndexPart]:
    page = await agents.parts(person, limit=2)
    parts = page.items
    while page.after is not None:
        page = await agents.parts(person, after=int(page.after), limit=2)
        parts += page.items
    return parts


async def _three(agents: AgentStore, service: str) -> tuple[Person, list[IndexPart]]:
    """A person with three threads of two turns, the threads `a`, `b`, `c`, and a part for each."""
    person, parts, first = Person(service, "a", "u"), [], 1
    for name in "abc":
        *_, turn = await agents.append_turns(Place(service, "a", name, "u"), said("x", "y"))
        parts.append(IndexPart(first, turn.id, f"\0{name}\xff".encode()))
        first = turn.id + 1
    epoch = await agents.epoch(person)
    for part in parts:
        await agents.put_part(person, part, epoch=epoch)
    return person, parts


class PartConformance(Suite):
    """`epoch`, `put_part`, `parts`."""

    keeps_parts = True
    """Whether the store keeps parts at all."""

    @in_a_loop
    async def test_an_epoch_lasts_while_turns_are_only_added(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        place = Place(service, "a", "t", "u")
        assert await agents.epoch(person) == 0
        (turn,) = await agents.append_turns(place, said("x"))
        epoch = await agents.epoch(person)
        assert epoch != 0
        await agents.append_turns(place, said("y", "z"))
        await agents.append_turns(place._replace(thread="t2"), said("x"))
        await agents.touch(place._replace(thread="t3"))
        await agents.put_fact(person, "n", "v", expect=0)
        await agents.put_fact(person, "n", "w", expect=1)
        await agents.put_vectors(person, [vector("turn", turn.id, 1.0)])
        await agents.delete_fact(person, "n")
        await agents.append_turns(Place(service, "a", "other", "v"), said("x"))
        await agents.delete_thread(Place(service, "a", "other"))
        await agents.forget_user(service, "u", dry_run=True)
        assert epoch == await agents.epoch(person)

    @in_a_loop
    async def test_an_epoch_ends_where_turns_go_or_come_and_never_comes_back(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        nobody = Person(service, "a", "")
        seen = list[int]()

        async def append(thread: str, user: str = "u") -> None:
            await agents.append_turns(Place(service, "a", thread, user), said("x"))

        def delete(thread: str) -> Callable[[], Awaitable[Any]]:
            return lambda: agents.delete_thread(Place(service, "a", thread))

        for _ in range(2):
            await append("nobodys", "")
            nobodys = await agents.epoch(nobody)
            for thread in ("kept", "one", "two", "three"):
                await append(thread)
            ends: list[Callable[[], Awaitable[Any]]] = [
                delete("one"),
                delete("two"),
                lambda: agents.touch(Place(service, "a", "nobodys", "u")),
                delete("nobodys"),
            ]
            seen.append(await agents.epoch(person))
            for end in ends:
                await end()
                seen.append(await agents.epoch(person))
                await append("kept")
                # What is added after a removal begins no further epoch.
                assert seen[-1] == await agents.epoch(person)
            assert nobodys != await agents.epoch(nobody)
            await agents.forget_user(service, "u")
            assert await agents.epoch(person) == 0
        assert 0 not in seen
        assert len(set(seen)) == len(seen), seen

    @in_a_loop
    async def test_parts_are_given_back_in_order_and_are_no_change(
        self, store: Keeping, service: str
    ) -> None:
        agents = store.agents()
        person, parts = await _three(agents, service)
        before = await agents.version(person), await agents.epoch(person)
        whole = IndexPart(1, parts[1].last, b"over two")
        epoch = await agents.epoch(person)
        if self.keeps_parts:
            assert parts == await _kept(agents, person)
            assert await agents.put_part(person, whole, epoch=epoch)
            assert [whole, parts[2]] == await _kept(agents, person)
        else:
            assert not await agents.put_part(person, whole, epoch=epoch)
            assert await _kept(agents, person) == []
        assert before == (await agents.version(person), await agents.epoch(person))
        for other in (Person(service, "a", ""), Person(service, "b", "u"), Person("", "a", "u")):
            assert await _kept(agents, other) == []

    @in_a_loop
    async def test_a_part_of_an_epoch_that_has_ended_is_not_kept(
        self, store: Keeping, service: str
    ) -> None:
        agents = store.agents()
        person, (*_, part) = await _three(agents, service)
        epoch = await agents.epoch(person)
        await agents.delete_thread(Place(service, "a", "c"))
        assert not await agents.put_part(person, part, epoch=epoch)
        await agents.forget_user(service, "u")
        assert not await agents.put_part(person, part, epoch=epoch)
        assert not await agents.put_part(person, part, epoch=0)
        assert await _kept(agents, person) == []

    @in_a_loop
    async def test_parts_go_with_the_turns_that_they_were_made_of(
        self, store: Keeping, service: str
    ) -> None:
        agents = store.agents()
        person, parts = await _three(agents, service)
        kept = parts if self.keeps_parts else []
        await agents.append_turns(Place(service, "a", "d", "u"), said("z"))
        await agents.delete_fact(person, "n")
        assert kept == await _kept(agents, person)
        await agents.delete_thread(Place(service, "a", "b"))
        assert kept[:1] + kept[2:] == await _kept(agents, person)
        await agents.forget_user(service, "u")
        assert await _kept(agents, person) == []

    @in_a_loop
    async def test_parts_go_where_a_thread_comes_between_their_turns(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        person, nobody = Person(service, "a", "u"), Person(service, "a", "")
        (first,) = await agents.append_turns(place, said("x"))
        (between,) = await agents.append_turns(Place(service, "a", "n"), said("y"))
        (last,) = await agents.append_turns(place, said("z"))
        for whose, ends in ((person, [first, last]), (nobody, [between])):
            epoch, start = await agents.epoch(whose), 1
            for turn in ends:
                part = IndexPart(start, turn.id, b"part")
                await agents.put_part(whose, part, epoch=epoch)
                start = turn.id + 1
        await agents.touch(Place(service, "a", "n", "u"))
        kept = [IndexPart(1, first.id, b"part")] if self.keeps_parts else []
        assert kept == await _kept(agents, person)
        assert await _kept(agents, nobody) == []
