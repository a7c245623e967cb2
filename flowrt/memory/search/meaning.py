"""Vectors for what has none: of a question at once, of turns and facts in the background."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from typing import NamedTuple

from flowrt.errors import ModelError, ModelRefused
from flowrt.llm.embedding import EmbeddingModel
from flowrt.memory.search.person import Kind, PersonIndex, fact_text
from flowrt.observe.log import get_logger
from flowrt.storage.agents.protocol import AgentStore, Vector

PATIENCE = 5.0
"""Seconds that a search waits for the vector of its question; then it goes by words."""

LONGEST = 8_000
"""Characters of a text that are embedded: providers refuse what is longer than 8,000 tokens."""

_BATCH = 128

# Refused for the key or the model: asking text by text would be as many refusals more.
_NOT_THE_TEXT = (401, 403, 404)

_log = get_logger("flowrt.memory")


class Embedded(NamedTuple):
    """A vector, and the model that it is of."""

    model: str
    vector: list[float]


class Embedder:
    """An embedding model as a search needs it: its failure costs the meaning, not the search."""

    def __init__(self, model: EmbeddingModel) -> None:
        self._model = model
        self._identity: tuple[str, int] | None = None

    async def question(self, text: str) -> Embedded | None:
        """The vector of a question; None where it is blank or the model does not answer."""
        if not text.strip():
            return None
        try:
            async with asyncio.timeout(PATIENCE):
                made = await self._model.embed([text[:LONGEST]])
        except (ModelError, TimeoutError) as error:
            _log.warning(
                "a question could not be embedded; memory is searched by words",
                connector=self._model.name,
                error=str(error) or f"no answer within {PATIENCE:g} seconds",
            )
            return None
        return Embedded(made.model, made.vectors[0])

    async def identity(self) -> tuple[str, int]:
        """The name of the model and the size of its vectors, as the model itself gives them."""
        if self._identity is None:
            made = await self._model.embed(["memory"])
            self._identity = made.model, len(made.vectors[0])
        return self._identity

    async def texts(self, kind: Kind, texts: dict[int, str]) -> list[Vector]:
        """Vectors for texts by their ids; those that the model refuses have none."""
        try:
            made = await self._model.embed([text[:LONGEST] for text in texts.values()])
        except ModelRefused as error:
            if error.status in _NOT_THE_TEXT:
                raise
            if len(texts) > 1:
                # One text that the provider does not take must not cost the others their vectors.
                return [
                    vector
                    for id_, text in texts.items()
                    for vector in await self.texts(kind, {id_: text})
                ]
            _log.warning(
                "a text could not be embedded; it is found by its words",
                connector=self._model.name,
                kind=kind,
                id=next(iter(texts)),
                error=str(error),
            )
            return []
        return [
            Vector(kind, id_, made.model, packed(vector))
            for id_, vector in zip(texts, made.vectors, strict=True)
        ]


def packed(vector: Sequence[float]) -> bytes:
    """A vector as stores keep it: little-endian float32."""
    return struct.pack(f"<{len(vector)}f", *vector)


async def fill(store: AgentStore, embedder: Embedder, index: PersonIndex) -> None:
    """Make the vectors that a person's turns and facts still want, and store them.

    Of an index that is built anew meanwhile, the rest is left to whoever asks next. What is asked
    for while this works is made by it as well: the question came with something new.
    """
    if index.filling:
        index.asked_again = True
        return
    index.filling = index.asked_again = True
    try:
        identity = await embedder.identity()
        while index.asked_again:
            index.asked_again = False
            async with index.lock:
                await index.refresh(store)
                await index.follow_vectors(store, *identity, again=True)
            await _fill(store, embedder, index, index.generation)
    except ModelError as error:
        _log.warning(
            "memory could not be embedded; it is found by its words until the next search",
            waiting=index.waiting,
            error=str(error),
        )
    finally:
        index.filling = False


async def _fill(store: AgentStore, embedder: Embedder, index: PersonIndex, generation: int) -> None:
    facts = index.missing("fact")
    texts = {id_: fact_text(index.facts[number]) for id_, number in facts.items()}
    while texts:
        batch = {id_: texts.pop(id_) for id_ in list(texts)[:_BATCH]}
        if not await _embed(store, embedder, index, generation, "fact", batch, facts):
            return
    turns = index.missing("turn")
    after, last = min(turns, default=0) - 1, max(turns, default=0)
    while after < last:
        page = await store.turns_of(index.person, after=after, limit=_BATCH)
        batch = {turn.id: turn.text for turn in page.items if turn.id in turns}
        if batch and not await _embed(store, embedder, index, generation, "turn", batch, turns):
            return
        if page.after is None:
            return
        after = page.items[-1].id


async def _embed(
    store: AgentStore,
    embedder: Embedder,
    index: PersonIndex,
    generation: int,
    kind: Kind,
    texts: dict[int, str],
    numbers: dict[int, int],
) -> bool:
    """Make, store and index the vectors of one batch; False where the index is another by now."""
    made = await embedder.texts(kind, texts)
    await store.put_vectors(index.person, made)
    async with index.lock:
        if index.generation != generation or index.vectors is None:
            return False
        index.add_vectors(made, numbers)
        refused = texts.keys() - {vector.id for vector in made}
        index.refused.update(numbers[id_] for id_ in refused)
    return True
