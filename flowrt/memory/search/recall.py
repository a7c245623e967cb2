"""Finding what was said to an agent and what it knows, for one person."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

from flowrt.errors import StoreError
from flowrt.memory.search.meaning import Embedder, fill
from flowrt.memory.search.person import Kind, Kinds, PersonIndex, fact_text, speaker
from flowrt.memory.search.tokens import matching, terms
from flowrt.observe.log import get_logger
from flowrt.storage.agents.protocol import AgentStore, Fact, Person, Place

CACHE = 256 * 1024 * 1024
"""Bytes of indexes that are kept, the last used ones; the one in use is kept whatever its size."""

Spawn = Callable[[Coroutine[Any, Any, None], str], object]

_log = get_logger("flowrt.memory")


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found.

    `name` is a fact's name or who said a turn; `thread` and `seq` of a fact are the turn it came
    from. `score` is in standard deviations and compares hits of one search only. `why` says what
    found it: its `words`, its meaning, or what was said around it.
    """

    kind: Kind
    id: int
    thread: str
    seq: int
    name: str
    text: str
    score: float
    at: float
    why: Literal["words", "meaning", "context"]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The hits, best first; `by` what they were ranked, and how many texts wait for a vector."""

    hits: list[Hit]
    by: Literal["words", "meaning"]
    waiting: int


class Recall:
    """Searches the record of agents; one for a store and a process.

    With an embedder it ranks by meaning and words, else by words. `spawn` runs what is made in the
    background, such as `Runtime.spawn`; without it only `embed` makes vectors.
    """

    def __init__(
        self,
        store: AgentStore,
        embedder: Embedder | None = None,
        *,
        spawn: Spawn | None = None,
        cache: int = CACHE,
    ) -> None:
        if embedder is not None and find_spec("numpy") is None:
            _log.warning(
                "numpy is not installed, so memory is searched by words; "
                "pip install 'flowrt[embeddings]'"
            )
            embedder = None
        self._store = store
        self._embedder = embedder
        self._spawn = spawn
        self._cache = cache
        self._indexes: OrderedDict[Person, PersonIndex] = OrderedDict()

    async def search(
        self,
        person: Person,
        query: str,
        *,
        limit: int = 10,
        thread: str | None = None,
        kinds: Kinds = ("turn", "fact"),
    ) -> Found:
        """The best turns and facts of a person for a question, in one thread or in all.

        Raises `StoreUnavailable`. A model that fails costs the meaning, not the search.
        """
        asked = await self._embedder.question(query) if self._embedder else None
        index = self._index(person)
        async with index.lock:
            changed = await index.refresh(self._store)
            if asked is not None:
                await index.follow_vectors(
                    self._store, asked.model, len(asked.vector), again=changed and not index.filling
                )
            ranked = index.rank(
                query, asked and asked.vector, limit=limit, thread=thread, kinds=kinds
            )
            by_meaning = asked is not None and bool(index.vectors and index.vectors.count)
            waiting = index.waiting if self._embedder else 0
            places = [_Placed.of(index, number, score) for number, score in ranked]
        if index.unkept:
            await self._keep(index)
        if waiting and asked is not None:
            self.learn(person)
        self._evict()
        wanted = terms(query)
        hits = [await self._hit(person, placed, wanted) for placed in places]
        by: Literal["words", "meaning"] = "meaning" if by_meaning else "words"
        return Found([hit for hit in hits if hit is not None], by, waiting)

    async def _keep(self, index: PersonIndex) -> None:
        """Have the store keep what was indexed: in the background, where that is possible."""
        work = keep(self._store, index)
        if self._spawn:
            self._spawn(work, "memory index")
        else:
            await work

    def learn(self, person: Person) -> None:
        """Make the vectors of what is new about a person in the background, where any are made."""
        if self._embedder is None:
            return
        index = self._index(person)
        if index.filling:
            index.asked_again = True
        elif self._spawn:
            self._spawn(fill(self._store, self._embedder, index), "memory vectors")

    async def embed(self, person: Person) -> None:
        """Make the vectors that a person's turns and facts still want, and wait for them."""
        if self._embedder:
            await fill(self._store, self._embedder, self._index(person))

    async def renew(self, service: str) -> None:
        """Make the vectors of everybody whose stored ones are of another model or size.

        One vector of each person is looked at. Raises `StoreUnavailable`.
        """
        if self._embedder is None:
            return
        wanted = await self._embedder.identity()
        for agent in await self._store.agents(service):
            for user in await self._store.users(service, agent):
                person = Person(service, agent, user)
                known = (await self._store.vectors_of(person, limit=1)).items
                if known and (known[0].model, known[0].size) != wanted:
                    _log.info("memory is embedded anew", agent=agent, was=known[0].model)
                    await self.embed(person)
                    self._evict()

    def _index(self, person: Person) -> PersonIndex:
        index = self._indexes.get(person)
        if index is None:
            index = self._indexes[person] = PersonIndex(person)
        self._indexes.move_to_end(person)
        return index

    @property
    def footprint(self) -> int:
        """About how many bytes of memory the indexes take."""
        return sum(index.footprint for index in self._indexes.values())

    def _evict(self) -> None:
        total = self.footprint
        while total > self._cache and len(self._indexes) > 1:
            _, index = self._indexes.popitem(last=False)
            total -= index.footprint

    async def _hit(self, person: Person, found: _Placed, wanted: list[str]) -> Hit | None:
        """A hit with its text; None for a turn that is no longer there, or is another person's."""
        if found.fact is not None:
            fact = found.fact
            return found.hit(fact.name, fact_text(fact), fact.value, fact.updated, wanted)
        place = Place(person.service, person.agent, found.thread, person.user)
        page = await self._store.turns(place, after=found.seq - 1, limit=1)
        for turn in page.items:
            # A place without a user asks for anybody's thread: it may have found its owner since.
            if turn.id == found.id and turn.user == person.user:
                return found.hit(speaker(turn), turn.text, turn.text, turn.at, wanted)
        return None


async def keep(store: AgentStore, index: PersonIndex) -> None:
    """Have the store keep the closed runs of an index, for the next process that searches."""
    try:
        while True:
            async with index.lock:
                epoch, part = index.epoch, index.next_part()
            if part is None:
                return
            if not await store.put_part(index.person, part, epoch=epoch):
                # It keeps none, or something was removed: each search would make another in vain.
                index.keep_none()
                return
    except StoreError as error:
        # Searches do without; each process that makes the index anew will try again.
        _log.warning("the index of a memory could not be kept", error=str(error))


@dataclass(frozen=True, slots=True)
class _Placed:
    """What was ranked, before its text is read."""

    id: int
    thread: str
    seq: int
    score: float
    fact: Fact | None
    embedded: bool

    @classmethod
    def of(cls, index: PersonIndex, number: int, score: float) -> _Placed:
        embedded = index.vectors is not None and index.vectors.has(number)
        return cls(*index.place(number), score, index.facts.get(number), embedded)

    def hit(self, name: str, searched: str, text: str, at: float, wanted: list[str]) -> Hit:
        words = matching(searched, wanted)
        return Hit(
            kind="fact" if self.fact else "turn",
            id=self.id,
            thread=self.thread,
            seq=self.seq,
            name=name,
            text=text,
            score=round(self.score, 3),
            at=at,
            why="words" if words else "meaning" if self.embedded else "context",
            words=words,
        )
