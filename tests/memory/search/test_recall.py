"""Searching by words: what is found, for whom, and what deleting does to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from flowrt.memory.search.recall import Hit, Recall
from flowrt.storage.agents.memory import MemoryAgentStore
from flowrt.storage.agents.protocol import AgentStore, NewTurn, Person, Place
from flowrt.storage.sqlite import SqliteStore

ADA = Person("shop", "support", "ada")
BOB = Person("shop", "support", "bob")


@asynccontextmanager
async def opened(kind: str, tmp_path: Path) -> AsyncIterator[AgentStore]:
    if kind == "memory":
        yield MemoryAgentStore()
        return
    store = SqliteStore(tmp_path / "state.db")
    await store.open()
    try:
        yield store.agents()
    finally:
        await store.close()


async def said(
    store: AgentStore, *texts: str, person: Person = ADA, thread: str = "t", name: str = ""
) -> None:
    attrs = {"name": name} if name else {}
    place = Place(person.service, person.agent, thread, person.user)
    await store.append_turns(place, [NewTurn("user", text, attrs=attrs) for text in texts])


async def found(recall: Recall, query: str, person: Person = ADA, **options: object) -> list[str]:
    result = await recall.search(person, query, **options)  # type: ignore[arg-type]
    return [hit.text for hit in result.hits]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_turns_and_facts_are_found_with_where_they_are_and_why(
    kind: str, tmp_path: Path
) -> None:
    async with opened(kind, tmp_path) as store:
        await said(store, "Hello", "I bought a red bicycle")
        await store.put_fact(ADA, "bike", "a red one", expect=0, thread="t", seq=2)
        result = await Recall(store).search(ADA, "buying bicycles")
        assert ("words", 0) == (result.by, result.waiting)
        hit, *_ = result.hits
        assert ("turn", "t", 2, "user", "words") == (
            hit.kind,
            hit.thread,
            hit.seq,
            hit.name,
            hit.why,
        )
        assert ("bought", "bicycle") == hit.words
        assert hit.score > 0
        (fact,) = (await Recall(store).search(ADA, "which bike", kinds=["fact"])).hits
        assert ("fact", "bike", "a red one", "t", 2) == (
            fact.kind,
            fact.name,
            fact.text,
            fact.thread,
            fact.seq,
        )


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_nobody_finds_what_somebody_else_said(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        await said(store, "my pin is lemon")
        await said(store, "lemon of nobody", person=Person("shop", "support", ""), thread="n")
        recall = Recall(store)
        for person in (BOB, Person("shop", "sales", "ada"), Person("other", "support", "ada")):
            assert [] == await found(recall, "lemon", person)
        assert ["my pin is lemon"] == await found(recall, "lemon")
        assert ["lemon of nobody"] == await found(recall, "lemon", Person("shop", "support", ""))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_warm_search_sees_what_was_said_and_changed_since(
    kind: str, tmp_path: Path
) -> None:
    async with opened(kind, tmp_path) as store:
        recall = Recall(store)
        assert [] == await found(recall, "lemon")
        await said(store, "one lemon")
        fact = await store.put_fact(ADA, "drink", "lemon tea", expect=0)
        assert {"one lemon", "lemon tea"} == set(await found(recall, "lemon"))
        await store.put_fact(ADA, "drink", "coffee", expect=fact.version)
        await said(store, "two lemons", thread="u")
        assert {"one lemon", "two lemons"} == set(await found(recall, "lemon"))
        assert ["coffee"] == await found(recall, "drink")
        await store.delete_fact(ADA, "drink")
        assert [] == await found(recall, "drink coffee")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_what_was_deleted_is_not_found_and_a_thread_of_the_same_name_is(
    kind: str, tmp_path: Path
) -> None:
    async with opened(kind, tmp_path) as store:
        recall = Recall(store)
        await said(store, "a lemon")
        await said(store, "an apple", thread="u")
        assert ["a lemon"] == await found(recall, "lemon")
        await store.delete_thread(Place(*ADA[:2], "t", "ada"))
        await said(store, "a lime")
        assert [] == await found(recall, "lemon")
        assert ["a lime"] == await found(recall, "lime")
        await store.forget_user("shop", "ada")
        assert [] == await found(recall, "lime apple")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_thread_that_becomes_somebodys_moves_with_its_turns(
    kind: str, tmp_path: Path
) -> None:
    nobody = Person("shop", "support", "")
    async with opened(kind, tmp_path) as store:
        recall = Recall(store)
        await said(store, "an early lemon", person=nobody)
        await said(store, "a late lemon", thread="u")
        assert ["an early lemon"] == await found(recall, "lemon", nobody)
        assert ["a late lemon"] == await found(recall, "lemon")
        await store.touch(Place("shop", "support", "t", "ada"))
        assert [] == await found(recall, "lemon", nobody)
        assert {"a late lemon", "an early lemon"} == set(await found(recall, "lemon"))


async def test_the_answer_behind_a_question_is_found_by_the_words_of_the_question() -> None:
    store = MemoryAgentStore()
    await said(store, "Fine weather", "What is the name of your dog?", "Rex", "Good night")
    result = await Recall(store).search(ADA, "name of the dog")
    assert ["What is the name of your dog?", "Rex"] == [hit.text for hit in result.hits[:2]]
    assert ("context", ()) == (result.hits[1].why, result.hits[1].words)


async def test_what_was_said_in_another_thread_is_no_neighbour() -> None:
    store = MemoryAgentStore()
    await said(store, "What is the name of your dog?", thread="t")
    await said(store, "Rex", thread="u")
    assert ["What is the name of your dog?"] == await found(Recall(store), "dog")


async def test_a_question_that_names_a_speaker_prefers_what_they_said() -> None:
    store = MemoryAgentStore()
    await said(store, "I like jazz", thread="a", name="Melanie")
    await said(store, "I like jazz too, Melanie", thread="b", name="Caroline")
    recall = Recall(store)
    assert "I like jazz" == (await found(recall, "which jazz does Melanie like"))[0]
    assert "I like jazz too, Melanie" == (await found(recall, "which jazz does Caroline like"))[0]
    hits: list[Hit] = (await recall.search(ADA, "jazz")).hits
    assert {"Melanie", "Caroline"} == {hit.name for hit in hits}


async def test_a_search_in_one_thread_or_of_one_kind_finds_nothing_else() -> None:
    store = MemoryAgentStore()
    await said(store, "lemon one", thread="a")
    await said(store, "lemon two", thread="b")
    await store.put_fact(ADA, "fruit", "lemon", expect=0, thread="b")
    recall = Recall(store)
    assert ["lemon one"] == await found(recall, "lemon", thread="a")
    assert [] == await found(recall, "lemon", thread="c")
    assert ["lemon"] == await found(recall, "lemon", kinds=["fact"])
    assert {"lemon one", "lemon two"} == set(await found(recall, "lemon", kinds=["turn"]))
    assert 2 == len(await found(recall, "lemon", limit=2))


@pytest.mark.parametrize("query", ["", "  ", "?", "what did I do", "\x00", "%_*\"'", "unheard-of"])
async def test_a_question_that_says_nothing_finds_nothing(query: str) -> None:
    store = MemoryAgentStore()
    await said(store, "a lemon", "\x00", "   ")
    assert [] == await found(Recall(store), query)


async def test_searches_at_once_while_turns_are_appended_lose_none() -> None:
    store = MemoryAgentStore()
    recall = Recall(store)

    async def writer(thread: str) -> None:
        for number in range(30):
            await said(store, f"lemon {number}", thread=thread)
            await asyncio.sleep(0)

    searches = [found(recall, "lemon", limit=100) for _ in range(20)]
    await asyncio.gather(writer("a"), writer("b"), *searches)
    assert 60 == len(await found(recall, "lemon", limit=100))


async def test_a_search_that_is_cancelled_leaves_the_next_one_whole() -> None:
    store = MemoryAgentStore()
    await said(store, *["lemon"] * 3000)
    recall = Recall(store)
    task = asyncio.create_task(recall.search(ADA, "lemon"))
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 3000 == len(await found(recall, "lemon", limit=5000, thread="t"))


async def test_indexes_beyond_the_cache_are_dropped_the_longest_unused_first() -> None:
    store = MemoryAgentStore()
    people = [Person("shop", "support", f"u{n}") for n in range(20)]
    for person in people:
        await said(
            store, *(f"lemon{n} tree{n}" for n in range(50)), person=person, thread=person.user
        )
    recall = Recall(store, cache=200_000)
    for person in people:
        assert ["lemon7 tree7"] == await found(recall, "lemon7", person, limit=1)
        assert recall.footprint <= 200_000
    assert ["lemon7 tree7"] == await found(recall, "lemon7", people[0], limit=1)
