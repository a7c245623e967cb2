"""The index of one person: what they said, what is known about them, and how to rank it.

It follows the store: what is newer is added, and where something was deleted it is built anew. It
keeps no text of turns; who finds one reads it from the store, which no longer has what was deleted.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from array import array
from collections import Counter
from collections.abc import Sequence
from operator import and_
from typing import Literal

from flowrt.memory.search.bm25 import WordIndex
from flowrt.memory.search.dialogue import Dialogue
from flowrt.memory.search.tokens import terms
from flowrt.memory.search.vectors import Vectors
from flowrt.storage.agents.protocol import AgentStore, Fact, Person, Turn, Vector

Kind = Literal["turn", "fact"]
Kinds = Sequence[Kind]

POOL = 300
"""How many texts are looked at further once words and meaning have ranked all."""

NAME = "name"
"""The key of a turn's `attrs` that says who spoke, where more than one person or agent does."""

_GONE, _TURN, _FACT = range(3)
_CODES: dict[Kind, int] = {"turn": _TURN, "fact": _FACT}
_AT_ONCE = 500
_MANY_GONE = 1000
_RELOAD = 64
_OF_TEXT = 48


class PersonIndex:
    """What can be found of a person, as of `version` of the store."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.version = -1
        self.lock = asyncio.Lock()
        self.vectors: Vectors | None = None
        self.filling = False
        self.asked_again = False
        self.generation = 0
        self._empty()

    def _empty(self) -> None:
        self.words = WordIndex()
        self.dialogue = Dialogue()
        self.facts: dict[int, Fact] = {}
        self._numbers_of_facts: dict[int, int] = {}
        self._kinds = bytearray()
        self._blank = bytearray()
        self._ids = array("q")
        self._seqs = array("q")
        self._threads = array("I")
        self._names: list[str] = []
        self._numbers_of_names: dict[str, int] = {}
        self._turns: Counter[str] = Counter()
        self._last = 0
        self._gone = 0
        self._findable = 0
        self.refused: set[int] = set()
        self.vectors = None
        self.generation += 1

    @property
    def footprint(self) -> int:
        """About how much memory it takes."""
        vectors = self.vectors.footprint if self.vectors else 0
        return self.words.footprint + vectors + _OF_TEXT * len(self._kinds) + 500 * len(self.facts)

    async def refresh(self, store: AgentStore) -> bool:
        """Follow the store; whether there was anything to follow."""
        version = await store.version(self.person)
        if version == self.version:
            return False
        if self._gone > _MANY_GONE:
            self._empty()
        # A turn appended between the two readings looks like one that is missing: ask once more.
        for _ in range(2):
            await self._extend(store)
            if await self._complete(store):
                break
        else:
            self._empty()
            await self._extend(store)
        await self._follow_facts(store)
        self.version = version
        return True

    async def _extend(self, store: AgentStore) -> None:
        while True:
            page = await store.turns_of(self.person, after=self._last)
            for start in range(0, len(page.items), _AT_ONCE):
                self._add_turns(page.items[start : start + _AT_ONCE])
                # A page takes some 60 ms, in which no other flow would run. In a thread it would
                # go on when the search is cancelled, beside the next one.
                await asyncio.sleep(0)
            if page.after is None:
                return

    async def _complete(self, store: AgentStore) -> bool:
        """Whether the threads of the store have the turns that are here, neither more nor fewer."""
        stored: Counter[str] = Counter()
        after = None
        while True:
            page = await store.threads(
                self.person.service,
                self.person.agent,
                user=self.person.user,
                after=after,
                limit=1000,
            )
            stored.update({info.thread: info.turns for info in page.items if info.turns})
            after = page.after
            if after is None:
                return stored == self._turns

    def _add_turns(self, turns: list[Turn]) -> None:
        self.words.add(turn.text for turn in turns)
        for turn in turns:
            name = turn.attrs.get(NAME)
            said_by = name if isinstance(name, str) else ""
            self.dialogue.add_turn(turn.thread, turn.text, turn.at, said_by)
            self._add(_TURN, turn.id, turn.thread, turn.seq, turn.text)
            self._turns[turn.thread] += 1
        self._last = turns[-1].id

    def _add(self, kind: int, id_: int, thread: str, seq: int, text: str) -> None:
        self._kinds.append(kind)
        blank = not text.strip()
        self._blank.append(blank)
        self._ids.append(id_)
        self._seqs.append(seq)
        name = self._numbers_of_names.setdefault(thread, len(self._names))
        if name == len(self._names):
            self._names.append(thread)
        self._threads.append(name)
        self._findable += not blank

    async def _follow_facts(self, store: AgentStore) -> None:
        stored: dict[int, Fact] = {}
        after = None
        while True:
            page = await store.facts(self.person, after=after, limit=1000)
            stored.update((fact.id, fact) for fact in page.items)
            after = page.after
            if after is None:
                break
        for id_ in self._numbers_of_facts.keys() - stored.keys():
            number = self._numbers_of_facts.pop(id_)
            self._drop(number)
        for fact in stored.values():
            if fact.id not in self._numbers_of_facts:
                self._add_fact(fact)

    def _drop(self, number: int) -> None:
        self._kinds[number] = _GONE
        self._findable -= not self._blank[number]
        self.refused.discard(number)
        if self.vectors is not None:
            self.vectors.discard(number)
        del self.facts[number]
        self._gone += 1

    def _add_fact(self, fact: Fact) -> None:
        number = len(self._kinds)
        text = fact_text(fact)
        self.words.add([text])
        self.dialogue.add_other()
        self._add(_FACT, fact.id, fact.thread, fact.seq, text)
        self._numbers_of_facts[fact.id] = number
        self.facts[number] = fact

    def place(self, number: int) -> tuple[int, str, int]:
        """The id, the thread and the sequence number of a text."""
        return self._ids[number], self._names[self._threads[number]], self._seqs[number]

    def rank(
        self,
        query: str,
        meaning: Sequence[float] | None,
        *,
        limit: int,
        thread: str | None,
        kinds: Kinds,
    ) -> list[tuple[int, float]]:
        """The best texts for a question, the best first, with their scores."""
        speaker, wanted = self.dialogue.named(terms(query))
        said = self.words.scores(wanted)
        scale = _scale(said, self.words.count)
        allowed = self._allowed(thread, kinds)
        if allowed is not None:
            said = {number: score for number, score in said.items() if allowed[number]}
        pool = max(POOL, limit)
        scores = {number: score / scale for number, score in _best(said, pool)}
        if meaning is not None and self.vectors is not None:
            scores = self.vectors.add_to(scores, meaning, allowed, pool)
        return _best(self.dialogue.share(scores, speaker), limit)

    def _allowed(self, thread: str | None, kinds: Kinds) -> bytes | None:
        """A byte for each text, 0 where it may not be found; None where all may."""
        if thread is None and set(kinds) == _CODES.keys() and not self._gone:
            return None
        wanted = {_CODES[kind] for kind in kinds}
        kept = self._kinds.translate(bytes(code in wanted for code in range(256)))
        if thread is None:
            return bytes(kept)
        name = self._numbers_of_names.get(thread, -1)
        return bytes(map(and_, kept, map(name.__eq__, self._threads)))

    @property
    def waiting(self) -> int:
        """How many texts have no vector yet and could have one."""
        return self._findable - len(self.refused) - (self.vectors.count if self.vectors else 0)

    def missing(self, kind: Kind) -> dict[int, int]:
        """The numbers of the texts that wait for a vector, by their ids, which rise."""
        has = self.vectors.has if self.vectors else self.refused.__contains__
        code = _CODES[kind]
        return {
            self._ids[number]: number
            for number, kept in enumerate(self._kinds)
            if kept == code
            and not self._blank[number]
            and not has(number)
            and number not in self.refused
        }

    def add_vectors(self, made: list[Vector], numbers: dict[int, int]) -> None:
        """Take up vectors that were made for the texts of these ids, but for what is gone since."""
        assert self.vectors is not None
        known = ((numbers[vector.id], vector.data) for vector in made)
        self.vectors.add({number: data for number, data in known if self._kinds[number] != _GONE})

    async def follow_vectors(
        self, store: AgentStore, model: str, size: int, *, again: bool
    ) -> None:
        """Read what vectors the store has of this model and size; others are as if missing.

        `again` looks for what somebody else has stored since. Where only a few are missing they are
        what was said just now, and cheaper made than looked for among all.
        """
        known = self.vectors
        if known is not None and (known.model, known.size) == (model, size):
            if not again or self.waiting <= _RELOAD:
                return
        else:
            known = None
        vectors = known or Vectors(model, size)
        numbers = {
            (kind, id_): number
            for number, (kind, id_) in enumerate(zip(self._kinds, self._ids, strict=True))
        }
        after = None
        while True:
            page = await store.vectors_of(self.person, after=after)
            found = {
                numbers[key]: vector.data
                for vector in page.items
                if (vector.model, vector.size) == (model, size)
                and (key := (_CODES[vector.kind], vector.id)) in numbers
            }
            vectors.add(found)
            after = page.after
            if after is None:
                break
        self.vectors = vectors


def speaker(turn: Turn) -> str:
    """Who said a turn: by name where `attrs` has one, else in which role."""
    name = turn.attrs.get(NAME)
    return name if isinstance(name, str) else turn.role


def fact_text(fact: Fact) -> str:
    """What a fact is found by."""
    return f"{fact.name}: {fact.value}"


def _scale(scores: dict[int, float], count: int) -> float:
    """The root mean square of the scores of all `count` texts; most have none, which is 0.

    Nearly their standard deviation, but not next to nothing where all texts score alike.
    """
    squares = sum(score * score for score in scores.values())
    return math.sqrt(squares / count) if squares else 1.0


def _best(scores: dict[int, float], count: int) -> list[tuple[int, float]]:
    """The `count` highest, the highest first; of equal ones mostly the newer first."""
    found = heapq.nlargest(count, reversed(scores), key=scores.__getitem__)
    return [(number, scores[number]) for number in found]
