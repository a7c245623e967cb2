"""What a search by words and by meaning costs, over 1,000 to 100,000 turns of one person.

Milliseconds are of the process's own processor time, for each store. First is a search that nobody
has made an index for; cold is the first search of a process, which finds what the last one kept of
it; after one new turn it is extended. The turns are random words, as often as words of a language
are: the n-th with a frequency of 1/n.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Coroutine
from itertools import accumulate
from pathlib import Path
from typing import Any

from bench.measure import median, report
from flowrt.llm.embedding import Embeddings
from flowrt.memory.search.english import STOP
from flowrt.memory.search.meaning import Embedder, packed
from flowrt.memory.search.recall import Recall
from flowrt.storage.agents.protocol import AgentStore, NewTurn, Person, Place, Vector
from flowrt.storage.tiers import parse_storage_url
from tests.redis_server import RedisServer

SIZES = (1_000, 10_000, 100_000)
WORDS, LENGTH, THREAD, DIMENSIONS, QUERIES = 20_000, 20, 100, 256, 50
PERSON = Person("bench", "agent", "ada")


class Random:
    """An embedding model that costs nothing: what is measured is the search."""

    name = "random"
    provider = "BENCH"

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    async def embed(
        self, texts: object, *, model: str | None = None, dimensions: int | None = None
    ) -> Embeddings:
        """One vector a text."""
        assert isinstance(texts, list)
        return Embeddings([self.vector() for _ in texts], "random")

    def vector(self) -> list[float]:
        """A direction."""
        return [self._rng.gauss(0, 1) for _ in range(DIMENSIONS)]


def language(rng: random.Random) -> list[str]:
    """The words, those that say nothing first: they are the commonest of every language."""
    letters = "bcdfghklmnprtvz"
    return sorted(STOP) + [
        "".join(rng.choice(letters) + rng.choice("aeiou") for _ in range(4))
        for _ in range(WORDS - len(STOP))
    ]


class Talk:
    """Turns and questions of one language, and vectors for them."""

    def __init__(self) -> None:
        self._rng = random.Random(4)
        self._words = language(self._rng)
        self._weights = list(accumulate(1 / n for n in range(1, WORDS + 1)))
        self.model = Random(self._rng)
        self._vectors = [packed(self.model.vector()) for _ in range(1000)]

    def text(self, length: int) -> str:
        """Some words."""
        return " ".join(self._rng.choices(self._words, cum_weights=self._weights, k=length))

    async def append(self, store: AgentStore, number: int, count: int, *, vectors: bool) -> None:
        """Record `count` turns behind `number` others."""
        place = Place(PERSON.service, PERSON.agent, f"t{number // THREAD}", PERSON.user)
        said = await store.append_turns(
            place, [NewTurn("user", self.text(LENGTH)) for _ in range(count)]
        )
        if vectors:
            near = [Vector("turn", t.id, "random", self._rng.choice(self._vectors)) for t in said]
            await store.put_vectors(PERSON, near)


async def main() -> None:
    """Measure on each store."""
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder))
        server.start()
        try:
            for url in ("memory:", f"sqlite:{folder}/state.db", server.url):
                tier = parse_storage_url(url)
                await tier.open()
                try:
                    await _grow(url.partition(":")[0], tier.agents())
                finally:
                    await tier.close()
        finally:
            server.stop()


async def _grow(name: str, store: AgentStore) -> None:
    """Grow one person's record and search it at each size."""
    talk, stored = Talk(), 0
    for size in SIZES:
        while stored < size:
            await talk.append(store, stored, THREAD, vectors=True)
            stored += THREAD
        for by, embedder in (("words", None), ("meaning", Embedder(talk.model))):
            (first,) = await _times(Recall(store, embedder), [talk.text(6)])
            recall = Recall(store, embedder)
            (cold,), block = await _watched(_times(recall, [talk.text(6)]))
            warm = await _times(recall, [talk.text(6) for _ in range(QUERIES)])
            # By the clock as well: vectors are multiplied on all cores at once.
            waited = await _waited(recall, [talk.text(6) for _ in range(QUERIES)])
            extended = []
            for _ in range(5):
                await talk.append(store, stored, 1, vectors=False)
                stored += 1
                extended += await _times(recall, [talk.text(6)])
            report(
                "search",
                store=name,
                by=by,
                turns=size,
                first_ms=round(first, 1),
                cold_ms=round(cold, 1),
                cold_longest_step_ms=round(block, 1),
                warm_ms=median(warm),
                warm_waited_ms=median(waited),
                after_a_turn_ms=median(extended),
                index_mb=round(recall.footprint / 1e6, 1),
            )


async def _waited(recall: Recall, queries: list[str]) -> list[float]:
    times = []
    for query in queries:
        began = time.perf_counter()
        await recall.search(PERSON, query)
        times.append(1000 * (time.perf_counter() - began))
    return times


async def _times(recall: Recall, queries: list[str]) -> list[float]:
    times = []
    for query in queries:
        # Of the processor: what else the machine does is not the search's.
        began = time.process_time()
        await recall.search(PERSON, query)
        times.append(1000 * (time.process_time() - began))
    return times


async def _watched(work: Coroutine[Any, Any, list[float]]) -> tuple[list[float], float]:
    """What `work` gives, and the longest time that it let nothing else run."""
    task, longest = asyncio.create_task(work), 0.0
    while not task.done():
        # Of the loop's thread alone.
        began = time.thread_time()
        await asyncio.sleep(0)
        longest = max(longest, time.thread_time() - began)
    return task.result(), 1000 * longest


if __name__ == "__main__":
    asyncio.run(main())
