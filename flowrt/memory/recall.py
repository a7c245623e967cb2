"""Finding what was said or noted about something, by its words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from flowrt.storage.agents.protocol import AgentStore, Person

_WORD = re.compile(r"\w\w+")


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn or a fact that was found. `why` are the words that matched."""

    kind: Literal["turn", "fact"]
    id: int
    thread: str
    seq: int
    name: str
    text: str
    score: float
    at: float
    why: str


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, the best first, and what they were ranked by."""

    hits: list[Hit]
    by: str
    waiting: int = 0


class Recall:
    """Searches the turns and facts of one person at a time."""

    def __init__(self, store: AgentStore) -> None:
        self._store = store

    async def search(self, person: Person, query: str, *, limit: int = 10) -> Found:
        """The best `limit` hits; the person is part of every question to the store."""
        words = set(_WORD.findall(query.casefold()))
        found = [hit async for hit in self._all(person, words)]
        found.sort(key=lambda hit: (-hit.score, -hit.at))
        return Found(found[:limit], "words")

    async def _all(self, person: Person, words: set[str]):  # type: ignore[no-untyped-def]
        after: str | None = None
        while True:
            facts = await self._store.facts(person, after=after)
            for fact in facts.items:
                if why := words & set(_WORD.findall(f"{fact.name} {fact.value}".casefold())):
                    yield Hit(
                        "fact", fact.id, fact.thread, fact.seq, fact.name, fact.value,
                        len(why) / len(words), fact.updated, " ".join(sorted(why)),
                    )  # fmt: skip
            if (after := facts.after) is None:
                break
        behind = 0
        while True:
            turns = await self._store.turns_of(person, after=behind)
            for turn in turns.items:
                if why := words & set(_WORD.findall(turn.text.casefold())):
                    yield Hit(
                        "turn", turn.id, turn.thread, turn.seq, turn.role, turn.text,
                        len(why) / len(words), turn.at, " ".join(sorted(why)),
                    )  # fmt: skip
                behind = turn.id
            if turns.after is None:
                return
