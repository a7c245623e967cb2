"""Several at once, writes that are cancelled, and stores that are opened again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from flowrt.errors import VersionConflict
from flowrt.storage.agents.protocol import Person, Place, Removed
from flowrt.testing.agent_memory_conformance.ids import fill
from flowrt.testing.agent_memory_conformance.suite import (
    NOTHING,
    Keeping,
    Suite,
    everything,
    in_a_loop,
    said,
    texts,
    walk,
)
from flowrt.testing.store_conformance.concurrency import cancel_everywhere
from flowrt.testing.store_conformance.suite import opened


class ConcurrencyConformance(Suite):
    """Contention, cancellation, restarts."""

    @in_a_loop
    async def test_of_100_appends_at_once_every_number_is_given_once(
        self, store: Keeping, service: str
    ) -> None:
        place = Place(service, "a", "t", "u")
        async with opened(self.another(store)) as second, opened(self.another(store)) as third:
            handles = [keeping.agents() for keeping in (store, second, third)]
            written = await asyncio.gather(
                *(
                    handles[at % 3].append_turns(place, said(f"{at} question", f"{at} answer"))
                    for at in range(100)
                )
            )
            turns = (await handles[1].turns(place)).items
            info = await handles[2].thread(place)
        assert list(range(1, 201)) == [turn.seq for turn in turns]
        assert sorted({turn.id for turn in turns}) == [turn.id for turn in turns]
        # Whole appends, each pair together, as each writer was told.
        assert turns == [turn for pair in sorted(written, key=lambda p: p[0].seq) for turn in pair]
        assert {f"{at} answer" for at in range(100)} == {turn.text for turn in turns[1::2]}
        assert info is not None
        assert (info.turns, info.version) == (200, 100)

    @in_a_loop
    async def test_whoever_reads_on_by_id_misses_no_turn_of_another_writer(
        self, store: Keeping, service: str
    ) -> None:
        """A number given before a commit that comes late would be behind the reader."""
        person = Person(service, "a", "u")
        async with opened(self.another(store)) as other:

            async def write(keeping: Keeping, thread: str) -> None:
                for number in range(40):
                    place = Place(service, "a", thread, "u")
                    await keeping.agents().append_turns(place, said(f"{thread}{number}"))

            async def follow() -> list[str]:
                seen: list[str] = []
                at = 0
                while len(seen) < 80:
                    page = await store.agents().turns_of(person, after=at, limit=7)
                    seen += texts(page.items)
                    at = page.items[-1].id if page.items else at
                    await asyncio.sleep(0)
                return seen

            async with asyncio.timeout(60):
                seen, *_ = await asyncio.gather(follow(), write(store, "p"), write(other, "q"))
        assert len(set(seen)) == 80

    @in_a_loop
    async def test_of_two_writers_of_one_fact_one_conflicts(
        self, store: Keeping, service: str
    ) -> None:
        async with opened(self.another(store)) as other:
            agents, person = store.agents(), Person(service, "a", "u")
            await agents.put_fact(person, "n", "base", expect=0)
            results = await asyncio.gather(
                agents.put_fact(person, "n", "ours", expect=1),
                other.agents().put_fact(person, "n", "theirs", expect=1),
                return_exceptions=True,
            )
            refused = [isinstance(result, VersionConflict) for result in results]
            assert sum(refused) == 1
            fact = await agents.fact(person, "n")
            assert fact is not None
            assert ("theirs" if refused[0] else "ours", 2) == (fact.value, fact.version)
            assert [earlier.value for earlier in fact.earlier] == ["base"]

    @in_a_loop
    async def test_of_25_changes_of_one_fact_at_once_none_is_lost(
        self, store: Keeping, service: str
    ) -> None:
        person = Person(service, "a", "u")

        async def add(through: Keeping, word: str) -> None:
            while True:
                found = await through.agents().fact(person, "n")
                value, version = (found.value, found.version) if found else ("", 0)
                try:
                    await through.agents().put_fact(person, "n", value + word, expect=version)
                except VersionConflict:
                    continue
                return

        words = [chr(ord("a") + at) for at in range(25)]
        async with opened(self.another(store)) as other:
            await asyncio.gather(
                *(add((store, other)[at % 2], word) for at, word in enumerate(words))
            )
        fact = await store.agents().fact(person, "n")
        assert fact is not None
        assert words == sorted(fact.value)
        assert fact.version == 25
        assert [fact.value[:at] for at in range(1, 25)] == [one.value for one in fact.earlier]
        assert list(range(1, 25)) == [one.version for one in fact.earlier]

    @in_a_loop
    async def test_of_many_who_name_a_user_at_once_one_makes_the_thread_theirs(
        self, store: Keeping, service: str
    ) -> None:
        async with opened(self.another(store)) as other:
            handles = [store.agents(), other.agents()]
            await handles[0].append_turns(Place(service, "a", "t"), said("opening"))
            await asyncio.gather(
                *(
                    handles[at % 2].append_turns(Place(service, "a", "t", f"u{at}"), said("x"))
                    for at in range(10)
                )
            )
            (user,) = await handles[0].users(service, "a")
            turns = (await handles[1].turns_of(Person(service, "a", user))).items
            assert len(turns) == 11
            assert {user} == {turn.user for turn in turns}

    @in_a_loop
    async def test_a_refused_fact_does_not_fail_the_writes_beside_it(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        await agents.put_fact(person, "taken", "base", expect=0)
        results = await asyncio.gather(
            *(
                agents.put_fact(person, "taken", f"{at}", expect=0)
                if at % 2
                else agents.append_turns(Place(service, "a", "t", "u"), said(f"{at}"))
                for at in range(60)
            ),
            return_exceptions=True,
        )
        assert [bool(at % 2) for at in range(60)] == [
            isinstance(result, VersionConflict) for result in results
        ]
        assert len((await agents.turns(Place(service, "a", "t"))).items) == 30

    @in_a_loop
    async def test_a_cancelled_append_happens_whole_or_not_at_all(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")

        async def write() -> None:
            await agents.append_turns(place, said("question", "answer"))

        async def check() -> None:
            # Any write that still happens is before this one.
            await write()
            turns = await walk(lambda at: agents.turns(place, after=int(at or 0)))
            assert ["question", "answer"] * (len(turns) // 2) == texts(turns)
            assert list(range(1, len(turns) + 1)) == [turn.seq for turn in turns]
            info = await agents.thread(place)
            assert info is not None
            assert (len(turns), len(turns) // 2) == (info.turns, info.version)
            assert turns == (await agents.turns_of(Person(service, "a", "u"))).items

        await cancel_everywhere(write, check)

    @in_a_loop
    async def test_a_cancelled_change_of_a_fact_leaves_the_old_value_or_the_new(
        self, store: Keeping, service: str
    ) -> None:
        agents, person = store.agents(), Person(service, "a", "u")
        await agents.put_fact(person, "n", "value 1", expect=0)

        async def write() -> None:
            found = await agents.fact(person, "n")
            assert found is not None
            value = f"value {found.version + 1}"
            await agents.put_fact(person, "n", value, expect=found.version)

        async def check() -> None:
            await agents.touch(Place(service, "a", "t", "u"))
            found = await agents.fact(person, "n")
            assert found is not None
            assert f"value {found.version}" == found.value
            values = [f"value {number}" for number in range(1, found.version)]
            assert values == [one.value for one in found.earlier]
            listed = [(fact.id, fact.value) for fact in (await agents.facts(person)).items]
            assert [(found.id, found.value)] == listed

        await cancel_everywhere(write, check)

    @in_a_loop
    async def test_a_cancelled_attribution_moves_everything_or_nothing(
        self, store: Keeping, service: str
    ) -> None:
        agents = store.agents()
        thread: list[Place] = []

        async def write() -> None:
            place = Place(service, "a", f"t{len(thread)}")
            thread.append(place)
            await agents.append_turns(place, said("x", "y"))
            await agents.touch(place._replace(user="u"))

        async def check() -> None:
            await agents.touch(Place(service, "a", "other"))
            place = thread[-1]
            info = await agents.thread(place)
            turns = (await agents.turns(place)).items
            assert all(info is not None and turn.user == info.user for turn in turns)
            for user in ("", "u"):
                of_user = (await agents.turns_of(Person(service, "a", user))).items
                here = [turn for turn in of_user if turn.thread == place.thread]
                assert here == (turns if info and info.user == user else [])

        await cancel_everywhere(write, check)

    @in_a_loop
    async def test_cancelled_removals_remove_everything_or_nothing(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        person = Person(service, "a", "u")
        removals: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: agents.forget_user(service, "u"),
            lambda: agents.delete_thread(place),
            lambda: agents.delete_fact(person, "word"),
        )
        for remove in removals:
            filled: list[bool] = []

            async def write(
                remove: Callable[[], Awaitable[object]] = remove, filled: list[bool] = filled
            ) -> None:
                filled.clear()
                await agents.forget_user(service, "u")
                await fill(agents, place, "word")
                filled.append(True)
                await remove()

            async def check(filled: list[bool] = filled) -> None:
                await agents.touch(Place(service, "a", "other"))
                threads, turns, facts, _, vectors = await everything(agents, person)
                # Cancelled while it was filled, which is many writes, there is any part of it.
                assert not filled or (len(threads), len(turns), len(facts), len(vectors)) in _LEFT

            await cancel_everywhere(write, check)

    @in_a_loop
    async def test_a_store_works_on_after_many_cancelled_calls(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        await agents.append_turns(place, said("x" * 10_000))
        for _ in range(100):
            task = asyncio.create_task(agents.turns(place))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        pages = await asyncio.gather(*(agents.turns(place) for _ in range(100)))
        assert [texts(page.items) for page in pages] == [["x" * 10_000]] * 100

    def test_the_record_is_there_when_the_store_is_opened_again_in_another_loop(
        self, store: Keeping, service: str
    ) -> None:
        person = Person(service, "a", "u")

        async def write() -> object:
            async with opened(store):
                await fill(store.agents(), Place(service, "a", "t", "u"), "word")
                return await everything(store.agents(), person)

        async def read() -> object:
            async with opened(store):
                return await everything(store.agents(), person)

        before = asyncio.run(write())
        assert before != NOTHING
        assert before == asyncio.run(read())

    @in_a_loop
    async def test_what_one_store_wrote_the_other_reads_at_once(
        self, store: Keeping, service: str
    ) -> None:
        place, person = Place(service, "a", "t", "u"), Person(service, "a", "u")
        async with opened(self.another(store)) as other:
            for number in range(1, 30):
                await store.agents().append_turns(place, said(f"{number}"))
                await store.agents().put_fact(person, "n", f"{number}", expect=number - 1)
                assert number == len((await other.agents().turns_of(person)).items)
                fact = await other.agents().fact(person, "n")
                assert fact is not None
                assert (f"{number}", number) == (fact.value, fact.version)
                version = await store.agents().version(person)
                assert version == await other.agents().version(person)

    @in_a_loop
    async def test_the_record_and_the_keys_do_not_mix(self, store: Keeping, service: str) -> None:
        space = f"{service}/user"
        await store.set(space, "agents/a/t", "value")
        await store.append(space, "agents/a/t2", [b"entry"])
        await fill(store.agents(), Place(service, "a", "t", "u"), "word")
        assert [k.name for k in (await store.scan(space)).keys] == ["agents/a/t", "agents/a/t2"]
        assert Removed() != await store.agents().forget_user(service, "u")
        found = await store.get(space, "agents/a/t")
        assert found is not None
        assert (found.value, found.version) == ("value", 1)


_LEFT = {(1, 2, 1, 3), (0, 0, 0, 0), (0, 0, 1, 1), (1, 2, 0, 2)}
"""Threads, turns, facts and vectors: all, none, all without the thread, all without the fact."""
