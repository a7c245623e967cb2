"""The index of one person: what they said, what is known about them, and how to rank it.

It follows the store: what is newer is added, and where turns were deleted it is built anew, from
the parts that the store has of it. It keeps no text of turns; who finds one reads it from the
store, which no longer has what was deleted.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from operator import and_
from typing import Literal

from flowrt.memory.search.bm25 import WordIndex
from flowrt.memory.search.dialogue import Dialogue
from flowrt.memory.search.parts import RunOfTurns, pack, unpack
from flowrt.memory.search.postings import ClosedRun
from flowrt.memory.search.tokens import terms
from flowrt.memory.search.vectors import Vectors
from flowrt.storage.agents.protocol import AgentStore, Fact, IndexPart, Person, Turn, Vector

Kind = Literal["turn", "fact"]
Kinds = Sequence[Kind]

POOL = 300
"""How many texts are looked at further once words and meaning have ranked all."""

NAME = "name"
"""The key of a turn's `attrs` that says who spoke, where more than one person or agent does."""

_GONE, _TURN, _FACT = range(3)
_CODES: dict[Kind, int] = {"turn": _TURN, "fact": _FACT}
_AT_ONCE, _PAGE = 100, 1000
_MANY_GONE = 1000
_RELOAD = 64
_OF_TEXT = 60


class PersonIndex:
    """What can be found of a person, as of `version` of the store."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.version = self.epoch = -1
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
        self._turn_ids = array("q")
        self._numbers_of_turns = array("I")
        self._last = 0
        self._closed = 0
        self._unkept: deque[tuple[int, ClosedRun, int, int]] = deque()
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
        # Before the turns: what changes while they are read is a change for the next search.
        epoch = await store.epoch(self.person)
        if epoch != self.epoch or self._gone > _MANY_GONE:
            self._empty()
            self.epoch = epoch
        if not self._ids:
            await self._load(store)
        await self._extend(store)
        await self._follow_facts(store)
        self.version = version
        return True

    async def _load(self, store: AgentStore) -> None:
        """Take up the parts that the store has, and the turns between them."""
        after = 0
        while True:
            page = await store.parts(self.person, after=after)
            for part in page.items:
                run = unpack(part.data)
                if run is not None:
                    await self._extend(store, part.first - 1)
                    self._take(run, part.last)
                    await asyncio.sleep(0)
            if page.after is None:
                return
            after = int(page.after)

    async def _extend(self, store: AgentStore, last: int | None = None) -> None:
        """Take up the turns behind those that are here, up to an id or all."""
        while last is None or self._last < last:
            page = await store.turns_of(self.person, after=self._last, limit=_PAGE)
            turns = [turn for turn in page.items if last is None or turn.id <= last]
            for start in range(0, len(turns), _AT_ONCE):
                self._add_turns(turns[start : start + _AT_ONCE])
                # A page takes some 30 ms, in which no other flow would run. In a thread it would
                # go on when the search is cancelled, beside the next one.
                await asyncio.sleep(0)
            if page.after is None or len(turns) < len(page.items):
                break
        if last is not None:
            self._last = last
            self._close()

    def _add_turns(self, turns: list[Turn]) -> None:
        while turns:
            some, turns = turns[: self.words.room], turns[self.words.room :]
            self.words.add(turn.text for turn in some)
            for turn in some:
                name = turn.attrs.get(NAME)
                said_by = name if isinstance(name, str) else ""
                self.dialogue.add_turn(turn.thread, turn.text, turn.at, said_by)
                self._turn_ids.append(turn.id)
                self._numbers_of_turns.append(len(self._kinds))
                self._add(_TURN, turn.id, turn.seq, turn.text)
            self._last = some[-1].id
            if not self.words.room:
                self._close()

    def _close(self) -> None:
        """Close the open run: all turns up to the last one are in closed runs then."""
        start, words = self.words.close()
        if words.texts:
            self._unkept.append((start, words, self._closed + 1, self._last))
        self._closed = self._last

    @property
    def unkept(self) -> bool:
        """Whether there are closed runs that no store was asked to keep."""
        return bool(self._unkept)

    def keep_none(self) -> None:
        """What was closed so far is not to be kept."""
        self._unkept.clear()

    def next_part(self) -> IndexPart | None:
        """The next closed run, for a store to keep; None where there is none."""
        while self._unkept:
            start, words, first, last = self._unkept.popleft()
            rows = [n for n in range(start, start + words.texts) if self._kinds[n] == _TURN]
            if rows:
                words = words.only([row - start for row in rows])
                return IndexPart(first, last, pack(self._run(words, rows)))
        return None

    def _run(self, words: ClosedRun, rows: list[int]) -> RunOfTurns:
        said = self.dialogue
        threads = _numbered(said.threads[row] for row in rows)
        speakers = _numbered(said.speakers[row] for row in rows)
        return RunOfTurns(
            words=words,
            ids=array("q", map(self._ids.__getitem__, rows)),
            seqs=array("q", map(self._seqs.__getitem__, rows)),
            blank=bytes(map(self._blank.__getitem__, rows)),
            asks=bytes(map(said.asks.__getitem__, rows)),
            begins=bytes(map(said.begins.__getitem__, rows)),
            threads=array("H", (threads[said.threads[row]] for row in rows)),
            speakers=array("H", (speakers[said.speakers[row]] for row in rows)),
            thread_names=[said.names[thread] for thread in threads],
            speaker_names=[said.speaker_names[speaker] for speaker in speakers],
            last=[said.last(thread) for thread in threads],
        )

    def _take(self, run: RunOfTurns, last: int) -> None:
        """Take up a run that a store has kept, of the turns up to the id `last`."""
        threads = [self.dialogue.know_thread(name) for name in run.thread_names]
        speakers = [self.dialogue.know_speaker(name) for name in run.speaker_names]
        self.words.take(run.words)
        self.dialogue.add_turns(
            array("I", map(threads.__getitem__, run.threads)),
            run.asks,
            run.begins,
            array("H", map(speakers.__getitem__, run.speakers)),
            dict(zip(threads, run.last, strict=True)),
        )
        self._turn_ids += run.ids
        first = len(self._kinds)
        self._numbers_of_turns.extend(range(first, first + run.words.texts))
        self._kinds += bytes([_TURN]) * run.words.texts
        self._blank += run.blank
        self._ids += run.ids
        self._seqs += run.seqs
        self._findable += run.blank.count(0)
        self._last = self._closed = last

    def _add(self, kind: int, id_: int, seq: int, text: str) -> None:
        self._kinds.append(kind)
        blank = not text.strip()
        self._blank.append(blank)
        self._ids.append(id_)
        self._seqs.append(seq)
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
        self.dialogue.add_other(fact.thread)
        self._add(_FACT, fact.id, fact.seq, text)
        self._numbers_of_facts[fact.id] = number
        self.facts[number] = fact
        if not self.words.room:
            self._close()

    def place(self, number: int) -> tuple[int, str, int]:
        """The id, the thread and the sequence number of a text."""
        thread = self.dialogue.names[self.dialogue.threads[number]]
        return self._ids[number], thread, self._seqs[number]

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
        name = self.dialogue.find_thread(thread)
        return bytes(map(and_, kept, map(name.__eq__, self.dialogue.threads)))

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
        after = None
        while True:
            page = await store.vectors_of(self.person, after=after, limit=_PAGE)
            found = {
                number: vector.data
                for vector in page.items
                if (vector.model, vector.size) == (model, size)
                and (number := self._find(vector.kind, vector.id)) is not None
            }
            vectors.add(found)
            after = page.after
            if after is None:
                break
        self.vectors = vectors

    def _find(self, kind: Kind, id_: int) -> int | None:
        """The number of a text; None where it is not here."""
        if kind == "fact":
            return self._numbers_of_facts.get(id_)
        place = bisect_left(self._turn_ids, id_)
        if place == len(self._turn_ids) or self._turn_ids[place] != id_:
            return None
        return self._numbers_of_turns[place]


def _numbered(found: Iterable[int]) -> dict[int, int]:
    """A number from 0 on for each that is found."""
    return {number: place for place, number in enumerate(dict.fromkeys(found))}


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
