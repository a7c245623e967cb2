"""Threads: whose they are, what they are called, when they were worked on, and their end."""

from __future__ import annotations

from flowrt.storage.agents.protocol import Person, Place, Removed, ThreadInfo
from flowrt.testing.agent_memory_conformance.suite import (
    Keeping,
    Suite,
    in_a_loop,
    said,
    texts,
    vector,
)


async def known(store: Keeping, place: Place) -> ThreadInfo:
    """What is known of a thread that is there."""
    info = await store.agents().thread(place)
    assert info is not None
    return info


class ThreadConformance(Suite):
    """`thread`, `threads`, `touch`, `set_title`, `delete_thread`, and attribution."""

    @in_a_loop
    async def test_a_thread_counts_its_turns_and_its_changes(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        await agents.append_turns(place, said("x", "y"))
        first = await known(store, place)
        assert (
            first.agent,
            first.thread,
            first.user,
            first.title,
            first.turns,
            first.version,
        ) == ("a", "t", "u", "", 2, 1)
        await agents.append_turns(place, said("z"))
        second = await known(store, place)
        assert (second.turns, second.version) == (3, 2)
        assert first.created == second.created <= second.active

    @in_a_loop
    async def test_touching_creates_a_thread_and_records_no_turn(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        created = await agents.touch(place)
        assert (created.turns, created.version, created.user) == (0, 1, "u")
        assert created == await known(store, place)
        touched = await agents.touch(place)
        assert (touched.turns, touched.version) == (0, 2)
        assert touched == await known(store, place)
        assert (await agents.turns(place)).items == []

    @in_a_loop
    async def test_the_first_write_that_names_a_user_makes_the_thread_theirs(
        self, store: Keeping, service: str
    ) -> None:
        agents, thread = store.agents(), Place(service, "a", "t")
        (turn,) = await agents.append_turns(thread, said("first"))
        assert turn.user == ""
        await agents.append_turns(thread._replace(user="u"), said("second"))
        assert (await known(store, thread)).user == "u"
        of_u = (await agents.turns_of(Person(service, "a", "u"))).items
        assert [(turn.text, turn.user) for turn in of_u] == [("first", "u"), ("second", "u")]
        assert (await agents.turns_of(Person(service, "a", ""))).items == []
        assert await agents.users(service, "a") == ["u"]

    @in_a_loop
    async def test_touching_may_name_the_user_too(self, store: Keeping, service: str) -> None:
        agents, thread = store.agents(), Place(service, "a", "t")
        await agents.append_turns(thread, said("first"))
        assert (await agents.touch(thread._replace(user="u"))).user == "u"
        assert (await agents.touch(thread._replace(user="v"))).user == "u"
        assert texts((await agents.turns_of(Person(service, "a", "u"))).items) == ["first"]

    @in_a_loop
    async def test_a_thread_never_changes_hands(self, store: Keeping, service: str) -> None:
        agents, thread = store.agents(), Place(service, "a", "t")
        await agents.append_turns(thread._replace(user="u"), said("first"))
        (by_v,) = await agents.append_turns(thread._replace(user="v"), said("second"))
        (by_nobody,) = await agents.append_turns(thread, said("third"))
        assert (by_v.user, by_nobody.user) == ("u", "u")
        assert (await known(store, thread)).user == "u"
        assert len((await agents.turns_of(Person(service, "a", "u"))).items) == 3
        for other in ("v", ""):
            assert (await agents.turns_of(Person(service, "a", other))).items == []
        assert await agents.users(service, "a") == ["u"]

    @in_a_loop
    async def test_what_nobody_said_is_found_by_no_question_about_a_person(
        self, store: Keeping, service: str
    ) -> None:
        agents, thread = store.agents(), Place(service, "a", "t")
        await agents.append_turns(thread, said("nobody's"))
        asked = thread._replace(user="u")
        assert await agents.thread(asked) is None
        assert (await agents.turns(asked)).items == []
        assert (await agents.threads(service, "a", user="u")).items == []
        assert (await agents.turns_of(Person(service, "a", "u"))).items == []
        assert await agents.users(service, "a") == []
        assert texts((await agents.turns_of(Person(service, "a", ""))).items) == ["nobody's"]
        assert [i.thread for i in (await agents.threads(service, "a", user="")).items] == ["t"]
        assert texts((await agents.turns(thread)).items) == ["nobody's"]

    @in_a_loop
    async def test_threads_are_listed_the_last_active_first(
        self, store: Keeping, service: str
    ) -> None:
        agents = store.agents()

        async def listed(user: str | None) -> str:
            return "".join(i.thread for i in (await agents.threads(service, "a", user=user)).items)

        for thread, user in (("p", "u"), ("q", "v"), ("r", ""), ("s", "u")):
            await agents.append_turns(Place(service, "a", thread, user), said("x"))
        assert tuple([await listed(user) for user in (None, "u", "v", "", "w")]) == (
            "srqp",
            "sp",
            "q",
            "r",
            "",
        )
        await agents.touch(Place(service, "a", "p"))
        await agents.append_turns(Place(service, "a", "r"), said("x"))
        assert (await listed(None), await listed("u")) == ("rpsq", "ps")
        (first, *_) = (await agents.threads(service, "a")).items
        assert first == await known(store, Place(service, "a", "r"))

    @in_a_loop
    async def test_a_title_names_a_thread_and_is_no_activity(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        await agents.append_turns(place, said("x"))
        await agents.append_turns(Place(service, "a", "later", "u"), said("x"))
        before = await known(store, place)
        for title in ("Kaffee \U0001f600 \0 \ud83d", "another", ""):
            await agents.set_title(place, title)
            assert title == (await known(store, place)).title
        after = await known(store, place)
        assert (before.version + 3, before.active) == (after.version, after.active)
        listed = (await agents.threads(service, "a")).items
        assert [info.thread for info in listed] == ["later", "t"]

    @in_a_loop
    async def test_a_title_for_no_thread_or_for_anothers_names_nothing(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        await agents.set_title(place, "title")
        assert await agents.thread(place) is None
        before = await agents.touch(place)
        await agents.set_title(place._replace(user="v"), "title")
        assert before == await known(store, place)

    @in_a_loop
    async def test_a_deleted_thread_leaves_the_facts_that_came_from_it(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        person = Person(service, "a", "u")
        one, two = await agents.append_turns(place, said("x", "y"))
        (other,) = await agents.append_turns(place._replace(thread="other"), said("z"))
        fact = await agents.put_fact(person, "n", "v", expect=0, thread="t", seq=1)
        kept = [vector("turn", other.id, 2.0), vector("fact", fact.id, 3.0)]
        gone = [vector("turn", one.id, 1.0), vector("turn", two.id, 1.5)]
        await agents.put_vectors(person, [*gone, *kept])
        assert Removed(threads=1, turns=2, vectors=2) == await agents.delete_thread(place)
        assert await agents.thread(place) is None
        assert (await agents.turns(place)).items == []
        assert [other] == (await agents.turns_of(person)).items
        assert fact == await agents.fact(person, "n")
        left = (await agents.vectors_of(person)).items
        assert sorted(kept, key=repr) == sorted(left, key=repr)
        assert Removed() == await agents.delete_thread(place)

    @in_a_loop
    async def test_a_thread_is_deleted_by_nobody_else(self, store: Keeping, service: str) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        await agents.append_turns(place, said("x"))
        assert Removed() == await agents.delete_thread(place._replace(user="v"))
        assert (await known(store, place)).turns == 1
        # Without a user it is whoever's.
        assert Removed(threads=1, turns=1) == await agents.delete_thread(place._replace(user=""))

    @in_a_loop
    async def test_a_deleted_thread_starts_again(self, store: Keeping, service: str) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        await agents.append_turns(place, said("x", "y"))
        await agents.set_title(place, "old")
        await agents.delete_thread(place)
        (turn,) = await agents.append_turns(place._replace(user="v"), said("new"))
        info = await known(store, place._replace(user="v"))
        assert (turn.seq, info.user, info.turns, info.version, info.title) == (1, "v", 1, 1, "")
        assert [turn] == (await agents.turns(place._replace(user=""))).items

    @in_a_loop
    async def test_agents_and_users_are_those_that_have_anything(
        self, store: Keeping, service: str
    ) -> None:
        agents = store.agents()
        assert (await agents.agents(service), await agents.users(service, "b")) == ([], [])
        await agents.touch(Place(service, "b", "t", "z"))
        await agents.touch(Place(service, "b", "t2"))
        await agents.put_fact(Person(service, "b", "B"), "n", "v", expect=0)
        await agents.put_fact(Person(service, "a", "u"), "n", "v", expect=0)
        await agents.touch(Place(service, "c", "t"))
        assert await agents.agents(service) == ["a", "b", "c"]
        assert await agents.users(service, "b") == ["B", "z"]
        assert await agents.users(service, "c") == []
        await agents.delete_fact(Person(service, "a", "u"), "n")
        await agents.delete_thread(Place(service, "b", "t"))
        assert await agents.agents(service) == ["b", "c"]
        assert await agents.users(service, "b") == ["B"]
