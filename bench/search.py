"""What a search by words and by meaning costs, over 1,000 to 100,000 turns of one person.

Milliseconds are of processor time. Cold is the first search of a process, which builds the index;
after one new turn it is extended. The turns are random words, as often as words of a language are:
the n-th with a frequency of 1/n.
"""

from __future__ import annotations

import asyncio
import random
import time
from itertools import accumulate

from bench.measure import median, report
from flowrt.llm.embedding import Embeddings
from flowrt.memory.search.english import STOP
from flowrt.memory.search.meaning import Embedder, packed
from flowrt.memory.search.recall import Recall
from flowrt.storage.agents.memory import MemoryAgentStore
from flowrt.storage.agents.protocol import NewTurn, Person, Place, Vector

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


async def main() -> None:
    """Grow one person's record and search it at each size."""
    rng = random.Random(4)
    model = Random(rng)
    words = language(rng)
    weights = list(accumulate(1 / n for n in range(1, WORDS + 1)))

    def text(length: int) -> str:
        return " ".join(rng.choices(words, cum_weights=weights, k=length))

    store = MemoryAgentStore()
    stored = 0
    for size in SIZES:
        while stored < size:
            place = Place(PERSON.service, PERSON.agent, f"t{stored // THREAD}", PERSON.user)
            said = await store.append_turns(
                place, [NewTurn("user", text(LENGTH)) for _ in range(THREAD)]
            )
            near = [Vector("turn", turn.id, "random", packed(model.vector())) for turn in said]
            await store.put_vectors(PERSON, near)
            stored += THREAD
        for by, embedder in (("words", None), ("meaning", Embedder(model))):
            recall = Recall(store, embedder)
            (cold,) = await _times(recall, [text(6)])
            warm = await _times(recall, [text(6) for _ in range(QUERIES)])
            extended = []
            for _ in range(5):
                await store.append_turns(place, [NewTurn("user", text(LENGTH))])
                stored += 1
                extended += await _times(recall, [text(6)])
            report(
                "search",
                by=by,
                turns=size,
                cold_ms=round(cold, 1),
                warm_ms=median(warm),
                after_a_turn_ms=median(extended),
                index_mb=round(recall.footprint / 1e6, 1),
            )


async def _times(recall: Recall, queries: list[str]) -> list[float]:
    times = []
    for query in queries:
        # Of the processor: what else the machine does is not the search's.
        began = time.process_time()
        await recall.search(PERSON, query)
        times.append(1000 * (time.process_time() - began))
    return times


if __name__ == "__main__":
    asyncio.run(main())
