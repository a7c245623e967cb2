"""Parts of an index that the store keeps: a new process finds with them what it finds without."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import StoreUnavailable
from flowrt.memory.search import bm25
from flowrt.memory.search.parts import RULES
from flowrt.memory.search.recall import Found, Recall
from flowrt.memory.search.tokens import terms
from flowrt.storage.agents.memory import MemoryAgentStore
from flowrt.storage.agents.opening import OpeningAgents
from flowrt.storage.agents.protocol import AgentStore, IndexPart, NewTurn, Page, Person, Place
from flowrt.storage.redis import RedisStore
from flowrt.storage.sqlite import SqliteStore
from flowrt.testing.agent_memory_conformance import Keeping
from flowrt.testing.store_conformance.suite import opened
from tests.memory.search.test_recall import ADA, found, said

RUN = 8
WORDS = ("lemon", "apple", "train", "Lisbon", "dog", "walk", "rain", "Tuesday", "music", "jazz")
NOBODY = ADA._replace(user="")


class WithoutParts(OpeningAgents):
    """A record of which no parts are read."""

    def __init__(self, agents: AgentStore) -> None:
        super().__init__(self._nothing, agents)

    async def _nothing(self) -> None: ...

    async def parts(self, person: Person, *, after: int = 0, limit: int = 16) -> Page[IndexPart]:
        return Page([], None)


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "RUN", RUN)


@pytest.fixture(params=["sqlite", "redis"])
def kept(request: pytest.FixtureRequest, tmp_path: Path, redis_url: str) -> Keeping:
    """A store that keeps parts, not yet open."""
    return RedisStore(redis_url) if request.param == "redis" else SqliteStore(tmp_path / "s.db")


def with_store(
    test: Callable[[AgentStore], Awaitable[None]],
) -> Callable[[Keeping], Coroutine[Any, Any, None]]:
    """A test of the record in each store that keeps parts, for which nothing is left behind."""

    async def run(kept: Keeping) -> None:
        async with opened(kept):
            try:
                await test(kept.agents())
            finally:
                await kept.agents().forget_user(ADA.service, ADA.user)
                await kept.agents().delete_thread(Place(*ADA[:2], "nobodys"))

    run.__name__ = run.__qualname__ = test.__name__
    return run


async def kept_parts(store: AgentStore, person: Person = ADA) -> list[IndexPart]:
    return (await store.parts(person, limit=1000)).items


async def search(store: AgentStore, query: str, person: Person = ADA) -> Found:
    """What a new process finds."""
    return await Recall(store).search(person, query, limit=50)


async def same(store: AgentStore, person: Person = ADA) -> None:
    """Check that with parts and without the same is found, with the same scores."""
    for query in ("lemon", "dog train", " ".join(WORDS)):
        assert await search(store, query, person) == await search(
            WithoutParts(store), query, person
        )


async def talk(store: AgentStore, count: int, thread: str = "t", seed: int = 1) -> None:
    rng = random.Random(seed)
    texts = (" ".join(rng.choices(WORDS, k=rng.randrange(6))) for _ in range(count))
    await said(store, *(f"{text}{rng.choice('.?')}" for text in texts), thread=thread, name="Ada")


@with_store
async def test_a_new_process_finds_the_same_from_what_the_last_one_kept(store: AgentStore) -> None:
    await talk(store, 3 * RUN + 2)
    await store.put_fact(ADA, "fruit", "lemon", expect=0)
    assert [] == await kept_parts(store)
    before = await search(store, "lemon")
    parts = await kept_parts(store)
    assert 3 == len(parts)
    assert 1 == parts[0].first
    assert [part.last + 1 for part in parts[:-1]] == [part.first for part in parts[1:]]
    assert before == await search(store, "lemon")
    await same(store)


@with_store
async def test_a_process_that_stays_keeps_what_is_said_meanwhile(store: AgentStore) -> None:
    recall = Recall(store)
    for number in range(3 * RUN):
        await talk(store, 1, thread=f"t{number % 3}", seed=number)
        if number % 5 == 0:
            # Facts stand between the turns of the index, and are in no part.
            await store.put_fact(ADA, f"fact {number}", "a lemon", expect=0)
        await found(recall, "lemon")
    assert 3 <= len(await kept_parts(store))
    await same(store)


@with_store
async def test_what_was_deleted_or_forgotten_is_in_no_part_and_not_found(store: AgentStore) -> None:
    for name in ("a", "b", "c"):
        await talk(store, RUN, thread=name)
        await said(store, f"my pin is pineapple{name}", thread=name)
    await search(store, "pin")
    assert 3 == len(await kept_parts(store))
    await store.delete_thread(Place(*ADA[:2], "b"))
    assert 1 == len(await kept_parts(store))
    assert [] == [hit for hit in (await search(store, "pineappleb")).hits if hit.thread == "b"]
    assert "c" == (await search(store, "pineapplec")).hits[0].thread
    await same(store)
    await store.forget_user(ADA.service, ADA.user)
    assert [] == await kept_parts(store)
    assert [] == (await search(store, "pin")).hits


@with_store
async def test_a_thread_that_becomes_somebodys_is_found_between_their_parts(
    store: AgentStore,
) -> None:
    await talk(store, RUN, thread="first")
    await said(store, "an early pineapple", person=NOBODY, thread="nobodys")
    await talk(store, RUN, thread="second")
    await search(store, "lemon")
    assert 2 == len(await kept_parts(store))
    await store.touch(Place(*ADA[:2], "nobodys", ADA.user))
    assert "an early pineapple" == (await search(store, "pineapple")).hits[0].text
    await same(store)


@with_store
async def test_a_part_of_other_rules_is_made_anew(store: AgentStore) -> None:
    await talk(store, 2 * RUN)
    await search(store, "lemon")
    first, second = await kept_parts(store)
    other = IndexPart(first.first, first.last, b"of another version\n" + first.data)
    assert await store.put_part(ADA, other, epoch=await store.epoch(ADA))
    await same(store)
    assert [first, second] == await kept_parts(store)


@with_store
async def test_whatever_is_done_parts_change_nothing_that_is_found(store: AgentStore) -> None:
    rng = random.Random(7)
    stays = Recall(store)
    for step in range(150):
        thread = rng.choice("abcd")
        match rng.randrange(12):
            case 0:
                await store.delete_thread(Place(*ADA[:2], thread, ADA.user))
            case 1:
                await said(store, "nobody's lemon", person=NOBODY, thread="nobodys")
            case 2:
                await said(store, "now a lemon of mine", thread="nobodys")
            case 3:
                await store.put_fact(ADA, rng.choice("xy"), f"lemon {step}", expect=None)
            case 4:
                await store.delete_fact(ADA, rng.choice("xy"))
            case _:
                await talk(store, rng.randrange(1, 5), thread=thread, seed=step)
        if step % 3 == 0:
            await found(stays, "lemon dog")
        if step % 10 == 0:
            await same(store)
            hits = {hit.id for hit in (await stays.search(ADA, "lemon", limit=9999)).hits}
            assert {hit.id for hit in (await search(store, "lemon")).hits} <= hits
    assert await kept_parts(store)


@with_store
async def test_searches_at_once_keep_each_part_once(store: AgentStore) -> None:
    await talk(store, 5 * RUN)
    recall = Recall(store)
    await asyncio.gather(*(found(recall, "lemon") for _ in range(4)), search(store, "dog"))
    assert 5 == len(await kept_parts(store))
    await same(store)


async def test_a_store_that_takes_no_part_costs_no_search(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Full(MemoryAgentStore):
        async def put_part(self, person: Person, part: IndexPart, *, epoch: int) -> bool:
            raise StoreUnavailable("it is full")

    store = Full()
    await said(store, *["a lemon"] * RUN)
    assert RUN == len(await found(Recall(store), "lemon"))
    assert "could not be kept" in capsys.readouterr().err


@with_store
async def test_threads_and_speakers_of_any_name_come_back(store: AgentStore) -> None:
    for name in ("", "\n", '"\\', "\0 \ud800 é", "x" * 3000):
        place = Place(*ADA[:2], f"t{name}", ADA.user)
        await store.append_turns(place, [NewTurn("user", "a lemon", attrs={"name": name})] * RUN)
    before = await search(store, "lemon")
    assert 5 == len(await kept_parts(store))
    assert before == await search(store, "lemon")


def test_other_terms_have_another_number() -> None:
    """Stored parts hold terms: where `terms` gives others, `RULES` has to be raised."""
    text = (
        "The children's 1,250 e-mails ran over; she bought two mice, hoped for studies of Zürich, "
        "naïve cafés in Kraków, boxes 東京タワー ไทย and didn't fly."
    )
    said = " ".join(terms(text))
    assert (1, "4b052378fde4") == (RULES, hashlib.sha256(said.encode()).hexdigest()[:12]), said
