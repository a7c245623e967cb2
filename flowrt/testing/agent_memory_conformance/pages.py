"""Pages: everything once, also where somebody writes meanwhile."""

from __future__ import annotations

from flowrt.storage.agents.protocol import AgentStore, Person, Place
from flowrt.testing.agent_memory_conformance.suite import (
    Keeping,
    Suite,
    in_a_loop,
    said,
    vector,
    walk,
)


class PageConformance(Suite):
    """The cursors of all listings."""

    @in_a_loop
    async def test_a_listing_of_any_size_of_page_has_everything_once(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        await fill(agents, person, 12)
        whole = [item for part in await read(agents, person, 1000) for item in part]
        assert len(whole) == 12 * 7
        for limit in (1, 2, 5, 11, 12, 13):
            assert whole == [item for part in await read(agents, person, limit) for item in part]

    @in_a_loop
    async def test_the_last_page_says_so(self, store: Keeping, service: str) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        await fill(agents, person, 3)
        place = Place(service, "a", "t0", "u")
        for limit, more in ((2, True), (3, False), (4, False)):
            pages = (
                await agents.threads(service, "a", limit=limit),
                await agents.threads(service, "a", user="u", limit=limit),
                await agents.facts(person, limit=limit),
                await agents.turns_of(person, limit=limit),
                await agents.vectors_of(person, limit=limit + 3),
                await agents.turns(place, limit=limit - 2),
            )
            assert [more] * 5 == [page.after is not None for page in pages[:5]]
        assert (await agents.turns(place, limit=1)).after is None

    @in_a_loop
    async def test_what_is_added_meanwhile_moves_nothing(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        await fill(agents, person, 6)
        threads = [info.thread for info in (await agents.threads(service, "a")).items]
        facts = [fact.name for fact in (await agents.facts(person)).items]

        seen_threads, seen_facts, turns = [], [], []
        at = after = behind = None
        for number in range(3):
            of_threads = await agents.threads(service, "a", user="u", after=at, limit=2)
            of_facts = await agents.facts(person, after=after, limit=2)
            of_turns = await agents.turns_of(person, after=int(behind or 0), limit=2)
            seen_threads += [info.thread for info in of_threads.items]
            seen_facts += [fact.name for fact in of_facts.items]
            turns += of_turns.items
            at, after, behind = of_threads.after, of_facts.after, of_turns.after
            await agents.append_turns(Place(service, "a", f"new{number}", "u"), said("new"))
            await agents.put_fact(person, f"new{number}", "v", expect=0)
        assert (threads, facts) == (seen_threads, seen_facts)
        assert (at, after) == (None, None)
        # Turns are added at the end: whoever reads on meets them.
        rest = await walk(lambda at: agents.turns_of(person, after=int(at or turns[-1].id)))
        assert [turn.text for turn in [*turns, *rest]] == ["x"] * 6 + ["new"] * 3

    @in_a_loop
    async def test_what_moves_to_the_front_meanwhile_is_not_given_twice(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        await fill(agents, person, 6)

        async def threads(after: str | None) -> tuple[list[str], str | None]:
            page = await agents.threads(service, "a", after=after, limit=2)
            await agents.touch(Place(service, "a", page.items[0].thread))
            return [info.thread for info in page.items], page.after

        async def facts(after: str | None) -> tuple[list[str], str | None]:
            page = await agents.facts(person, after=after, limit=2)
            first = page.items[0]
            await agents.put_fact(person, first.name, "changed", expect=first.version)
            return [fact.name for fact in page.items], page.after

        for read_page in (threads, facts):
            seen: list[str] = []
            after = None
            for _ in range(3):
                names, after = await read_page(after)
                seen += names
            assert after is None
            assert 6 == len(set(seen)) == len(seen)

    @in_a_loop
    async def test_what_is_removed_meanwhile_hides_nothing_else(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        await fill(agents, person, 6)
        threads = [info.thread for info in (await agents.threads(service, "a")).items]
        facts = [fact.name for fact in (await agents.facts(person)).items]
        of_threads = await agents.threads(service, "a", limit=2)
        of_facts = await agents.facts(person, limit=2)
        # The last one seen, which the cursor was made of, and the next.
        for name in (threads[1], threads[2]):
            await agents.delete_thread(Place(service, "a", name))
        for name in (facts[1], facts[2]):
            await agents.delete_fact(person, name)
        rest = (await agents.threads(service, "a", after=of_threads.after)).items
        assert threads[3:] == [info.thread for info in rest]
        more = (await agents.facts(person, after=of_facts.after)).items
        assert facts[3:] == [fact.name for fact in more]


async def fill(agents: AgentStore, person: Person, count: int) -> None:
    """`count` threads with a turn each, as many facts, and vectors of all of them."""
    for number in range(count):
        place = Place(person.service, person.agent, f"t{number}", person.user)
        (turn,) = await agents.append_turns(place, said("x"))
        fact = await agents.put_fact(person, f"n{number}", "v", expect=0)
        vectors = [vector("turn", turn.id, 1.0), vector("fact", fact.id, 2.0)]
        await agents.put_vectors(person, vectors)


async def read(agents: AgentStore, person: Person, limit: int) -> list[list[object]]:
    """All listings of a person, in pages of at most `limit`."""
    service, agent, user = person
    parts: list[list[object]] = [
        [*await walk(lambda at: agents.threads(service, agent, after=at, limit=limit))],
        [*await walk(lambda at: agents.threads(service, agent, user=user, after=at, limit=limit))],
        [*await walk(lambda at: agents.facts(person, after=at, limit=limit))],
        [*await walk(lambda at: agents.turns_of(person, after=int(at or 0), limit=limit))],
        [*await walk(lambda at: agents.vectors_of(person, after=at, limit=limit))],
    ]
    for number in range(12):
        place = Place(service, agent, f"t{number}", user)
        parts.append([*await walk(lambda at: agents.turns(place, after=int(at or 0), limit=limit))])  # noqa: B023 - awaited at once
    return parts
