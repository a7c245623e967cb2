"""Searching by meaning: vectors made in the background, another model, a model that fails."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from flowrt.errors import ModelRefused, ModelUnavailable
from flowrt.llm.embedding import Embeddings
from flowrt.llm.local_embedding import LocalEmbedding
from flowrt.memory.search import meaning
from flowrt.memory.search.meaning import Embedder
from flowrt.memory.search.recall import Recall
from flowrt.observe.log import capture_logs
from flowrt.storage.agents.memory import MemoryAgentStore
from flowrt.storage.agents.protocol import NewTurn, Person, Place

ADA = Person("shop", "support", "ada")
BOB = Person("shop", "support", "bob")
TOPICS = (("dog", "poodle", "puppy"), ("train", "railway"), ("lemon", "fruit"))


class Topics:
    """A model that knows three topics; `down` and `refuses` are what a provider can do."""

    provider = "TEST"
    name = "topics"

    def __init__(self, model: str = "topics-1", size: int = 4) -> None:
        self.model = model
        self.size = size
        self.sent: list[str] = []
        self.down = False
        self.calls = 0
        self.status = 400
        self.refuses = "\x07"

    async def embed(
        self, texts: Sequence[str], *, model: str | None = None, dimensions: int | None = None
    ) -> Embeddings:
        await asyncio.sleep(0)
        self.calls += 1
        if self.down:
            raise ModelUnavailable("the provider is down")
        if any(self.refuses in text or not text.strip() for text in texts):
            raise ModelRefused("not this text", status=self.status)
        self.sent += texts
        return Embeddings([self._vector(text.lower()) for text in texts], self.model)

    def _vector(self, text: str) -> list[float]:
        said = [float(any(word in text for word in topic)) for topic in TOPICS]
        return [*said, 0.1] + [0.0] * (self.size - 4)


class Background:
    """What a service does with background work: holds it, and can wait for all of it."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []

    def spawn(self, work: Coroutine[Any, Any, None], what: str) -> None:
        self.tasks.append(asyncio.create_task(work, name=what))

    async def done(self) -> None:
        while self.tasks:
            await self.tasks.pop()


async def said(
    store: MemoryAgentStore, *texts: str, person: Person = ADA, thread: str = ""
) -> None:
    for number, text in enumerate(texts):
        # Threads of their own, so that nothing is found as a neighbour.
        place = Place(*person[:2], thread or f"{person.user}{text}{number}", person.user)
        await store.append_turns(place, [NewTurn("user", text)])


async def test_what_is_new_waits_and_is_found_by_meaning_once_it_is_embedded() -> None:
    store, work = MemoryAgentStore(), Background()
    await said(store, "my poodle is ill", "the railway is late")
    await store.put_fact(ADA, "pet", "a puppy", expect=0)
    recall = Recall(store, Embedder(Topics()), spawn=work.spawn)
    first = await recall.search(ADA, "dog")
    assert ([], "words", 3) == (first.hits, first.by, first.waiting)
    await work.done()
    found = await recall.search(ADA, "dog")
    assert ("meaning", 0) == (found.by, found.waiting)
    assert {"my poodle is ill", "a puppy"} == {hit.text for hit in found.hits[:2]}
    assert {"meaning"} == {hit.why for hit in found.hits}
    assert 3 == len((await store.vectors_of(ADA)).items)


async def test_what_is_said_while_vectors_are_made_gets_one_too() -> None:
    gate = asyncio.Event()

    class Slow(Topics):
        async def embed(self, texts: Sequence[str], **options: Any) -> Embeddings:
            made = await super().embed(texts, **options)
            if "a puppy" in texts:
                await gate.wait()
            return made

    store, work = MemoryAgentStore(), Background()
    recall = Recall(store, Embedder(model := Slow()), spawn=work.spawn)
    await said(store, "a puppy")
    recall.learn(ADA)
    while "a puppy" not in model.sent:
        await asyncio.sleep(0)
    await said(store, "a train")
    recall.learn(ADA)
    gate.set()
    await work.done()
    assert 2 == len((await store.vectors_of(ADA)).items)


async def test_what_waits_is_ranked_by_its_words_meanwhile() -> None:
    store, work = MemoryAgentStore(), Background()
    recall = Recall(store, Embedder(Topics()), spawn=work.spawn)
    await said(store, "a puppy", "a train")
    await recall.embed(ADA)
    await said(store, "the dog barks")
    found = await recall.search(ADA, "dog")
    assert ("meaning", 1) == (found.by, found.waiting)
    assert ["the dog barks", "a puppy"] == [hit.text for hit in found.hits[:2]]
    assert ["words", "meaning"] == [hit.why for hit in found.hits[:2]]
    await work.done()
    assert 0 == (await recall.search(ADA, "dog")).waiting


async def test_a_text_is_embedded_once_and_never_for_somebody_else() -> None:
    store, model = MemoryAgentStore(), Topics()
    await said(store, "my dog")
    await said(store, "bob's train", person=BOB)
    recall = Recall(store, Embedder(model))
    await recall.embed(ADA)
    await recall.embed(ADA)
    await said(store, "my lemon")
    await recall.embed(ADA)
    await Recall(store, Embedder(model)).embed(ADA)
    assert ["my dog", "my lemon"] == [text for text in model.sent if text != "memory"]
    assert [] == (await store.vectors_of(BOB)).items


@pytest.mark.parametrize("other", [Topics("topics-2"), Topics("topics-1", size=8)])
async def test_vectors_of_another_model_or_size_are_made_anew_from_the_text(other: Topics) -> None:
    """FB-66."""
    store, work = MemoryAgentStore(), Background()
    await said(store, "my poodle", "a train")
    await Recall(store, Embedder(Topics())).embed(ADA)
    recall = Recall(store, Embedder(other), spawn=work.spawn)
    found = await recall.search(ADA, "dog")
    assert ([], "words", 2) == (found.hits, found.by, found.waiting)
    await work.done()
    assert "my poodle" == (await recall.search(ADA, "dog")).hits[0].text
    stored = (await store.vectors_of(ADA)).items
    assert {(other.model, other.size)} == {(vector.model, vector.size) for vector in stored}


async def test_a_model_that_is_down_costs_the_meaning_and_not_the_search() -> None:
    store, model, work = MemoryAgentStore(), Topics(), Background()
    await said(store, "the dog", "a puppy")
    recall = Recall(store, Embedder(model), spawn=work.spawn)
    await recall.embed(ADA)
    lines: list[dict[str, Any]] = []
    capture_logs(lines.append)
    model.down = True
    found = await recall.search(ADA, "dog")
    assert ("words", ["the dog"]) == (found.by, [hit.text for hit in found.hits])
    await said(store, "another dog")
    await recall.embed(ADA)
    assert 2 == len(lines)
    assert all("the provider is down" in line["error"] for line in lines)
    assert not any("puppy" in str(line) for line in lines)
    model.down = False
    await recall.embed(ADA)
    assert ("meaning", 0) == ((again := await recall.search(ADA, "dog")).by, again.waiting)


async def test_a_model_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Silent(Topics):
        async def embed(self, *_: object, **__: object) -> Embeddings:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr(meaning, "PATIENCE", 0.0)
    store = MemoryAgentStore()
    await said(store, "the dog")
    found = await Recall(store, Embedder(Silent())).search(ADA, "dog")
    assert ("words", 1) == (found.by, len(found.hits))


async def test_a_text_that_the_model_refuses_is_found_by_words_and_waits_no_longer() -> None:
    store, model = MemoryAgentStore(), Topics()
    await said(store, "a bell \x07 rings", "my poodle", "  ")
    recall = Recall(store, Embedder(model))
    await recall.embed(ADA)
    found = await recall.search(ADA, "bell")
    assert (0, "a bell \x07 rings") == (found.waiting, found.hits[0].text)
    assert "my poodle" == (await recall.search(ADA, "dog")).hits[0].text


async def test_a_key_that_is_refused_is_not_tried_on_each_text() -> None:
    store, model = MemoryAgentStore(), Topics()
    await said(store, *(f"dog {number}" for number in range(200)), thread="t")
    recall = Recall(store, Embedder(model))
    model.refuses, model.status = "dog", 401
    await recall.embed(ADA)
    assert 2 == model.calls
    assert 200 == (await recall.search(ADA, "train")).waiting


async def test_without_numpy_memory_is_searched_by_words_and_that_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[dict[str, Any]] = []
    capture_logs(lines.append)
    monkeypatch.setitem(sys.modules, "numpy", None)
    store = MemoryAgentStore()
    await said(store, "the dog")
    recall = Recall(store, Embedder(Topics()))
    for _ in range(2):
        found = await recall.search(ADA, "dog")
        assert ("words", 0, 1) == (found.by, found.waiting, len(found.hits))
    assert ["numpy is not installed"] == [line["event"][:22] for line in lines]


async def test_a_fact_that_changed_is_found_by_its_new_value_only() -> None:
    store = MemoryAgentStore()
    recall = Recall(store, Embedder(Topics()))
    await store.put_fact(ADA, "likes", "a poodle", expect=0)
    await recall.embed(ADA)
    await store.put_fact(ADA, "likes", "the railway", expect=1)
    await recall.embed(ADA)
    found = await recall.search(ADA, "train")
    assert (["the railway"], 0) == ([hit.text for hit in found.hits], found.waiting)


async def test_who_was_forgotten_while_vectors_were_made_leaves_none() -> None:
    store = MemoryAgentStore()
    recall = Recall(store, Embedder(Topics()))
    await said(store, *(f"dog {number}" for number in range(300)), thread="t")
    task = asyncio.create_task(recall.embed(ADA))
    for _ in range(12):
        await asyncio.sleep(0)
    await store.forget_user("shop", "ada")
    await task
    assert [] == (await store.vectors_of(ADA)).items
    assert [] == (await recall.search(ADA, "dog")).hits


async def test_the_local_model_finds_what_shares_no_word() -> None:
    store = MemoryAgentStore()
    await said(store, "our two poodles bark all night", "the train to Lisbon is late", "I like tea")
    recall = Recall(store, Embedder(LocalEmbedding()))
    await recall.embed(ADA)
    found = await recall.search(ADA, "which dogs does she own")
    assert "our two poodles bark all night" == found.hits[0].text
