"""The record of agents in the process's own memory, beside the keys of a `MemoryStore`."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple, TypeVar

from flowrt.clock import Clock, SystemClock
from flowrt.errors import VersionConflict
from flowrt.storage.agents.protocol import (
    Earlier,
    Fact,
    NewTurn,
    Page,
    Person,
    Place,
    Removed,
    Role,
    ThreadInfo,
    Turn,
    Vector,
)
from flowrt.storage.agents.rules import check_fact_owner, check_forgotten, check_vectors
from flowrt.storage.encoding import JSON, decode_value, encode_json

T = TypeVar("T")
_Agent = tuple[str, str]


class _Said(NamedTuple):
    """A turn; thread and user are its thread's. `attrs` is encoded, so that nobody changes it."""

    id: int
    seq: int
    role: Role
    text: str
    tokens: int
    attrs: bytes
    at: float


@dataclass(slots=True)
class _Thread:
    agent: _Agent
    name: str
    user: str
    created: float
    active: float
    stamp: int
    title: str = ""
    version: int = 0
    last: int = 0
    turns: list[_Said] = field(default_factory=list)

    @property
    def person(self) -> Person:
        return Person(*self.agent, self.user)

    def info(self) -> ThreadInfo:
        return ThreadInfo(
            agent=self.agent[1],
            thread=self.name,
            user=self.user,
            title=self.title,
            turns=len(self.turns),
            version=self.version,
            created=self.created,
            active=self.active,
        )

    def turn(self, said: _Said) -> Turn:
        attrs = decode_value(JSON, said.attrs)
        return Turn(
            id=said.id,
            thread=self.name,
            user=self.user,
            seq=said.seq,
            role=said.role,
            text=said.text,
            tokens=said.tokens,
            attrs=attrs,
            at=said.at,
        )


class MemoryAgentStore:
    """Keeps everything in memory. No method waits for anything, so each one happens whole."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._last = 0
        # Threads of an agent in the order of their activity, the last active at the end.
        self._threads: dict[_Agent, dict[str, _Thread]] = {}
        # Facts of a person in the order of their last change.
        self._facts: dict[Person, dict[str, Fact]] = {}
        self._vectors: dict[Person, dict[int, Vector]] = {}
        self._versions: dict[Person, int] = {}

    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        attrs = [encode_json(turn.attrs) for turn in turns]
        if not turns:
            return []
        thread = self._worked_on(place)
        new = [
            _Said(self._next(), seq, turn.role, turn.text, turn.tokens, data, thread.active)
            for seq, (turn, data) in enumerate(zip(turns, attrs, strict=True), thread.last + 1)
        ]
        thread.turns += new
        thread.last += len(new)
        self._changed(thread.person)
        return [thread.turn(said) for said in new]

    async def touch(self, place: Place) -> ThreadInfo:
        return self._worked_on(place).info()

    async def turns(
        self, place: Place, *, after: int = 0, limit: int = 500, newest_first: bool = False
    ) -> Page[Turn]:
        thread = self._find(place)
        if thread is None:
            return Page([], None)
        kept = thread.turns
        if newest_first:
            end = bisect_left(kept, after, key=attrgetter("seq")) if after else len(kept)
            found = kept[max(0, end - limit - 1) : end][::-1]
        else:
            start = bisect_right(kept, after, key=attrgetter("seq"))
            found = kept[start : start + limit + 1]
        page = _page(found, limit, [str(said.seq) for said in found])
        return Page([thread.turn(said) for said in page.items], page.after)

    async def turns_of(self, person: Person, *, after: int = 0, limit: int = 5000) -> Page[Turn]:
        def behind(thread: _Thread) -> Iterator[tuple[int, _Said, _Thread]]:
            start = bisect_right(thread.turns, after, key=attrgetter("id"))
            return ((said.id, said, thread) for said in thread.turns[start : start + limit + 1])

        merged = heapq.merge(*(behind(thread) for thread in self._threads_of(person)))
        found = [item for item, _ in zip(merged, range(limit + 1), strict=False)]
        page = _page(found, limit, [str(number) for number, _, _ in found])
        return Page([thread.turn(said) for _, said, thread in page.items], page.after)

    async def thread(self, place: Place) -> ThreadInfo | None:
        thread = self._find(place)
        return None if thread is None else thread.info()

    async def threads(
        self,
        service: str,
        agent: str,
        *,
        user: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[ThreadInfo]:
        before = float("inf") if after is None else int(after)
        found: list[_Thread] = []
        for thread in reversed(self._threads.get((service, agent), {}).values()):
            if thread.stamp < before and user in (None, thread.user):
                found.append(thread)
                if len(found) > limit:
                    break
        page = _page(found, limit, [str(thread.stamp) for thread in found])
        return Page([thread.info() for thread in page.items], page.after)

    async def agents(self, service: str) -> list[str]:
        places = {agent for agent, threads in self._threads.items() if threads}
        places |= {(person.service, person.agent) for person, facts in self._facts.items() if facts}
        return sorted(name for owner, name in places if owner == service)

    async def users(self, service: str, agent: str) -> list[str]:
        named = {thread.user for thread in self._threads.get((service, agent), {}).values()}
        named |= {
            person.user
            for person, facts in self._facts.items()
            if facts and (person.service, person.agent) == (service, agent)
        }
        return sorted(named - {""})

    async def set_title(self, place: Place, title: str) -> None:
        thread = self._find(place)
        if thread is not None:
            thread.title = title
            thread.version += 1

    async def delete_thread(self, place: Place) -> Removed:
        thread = self._find(place)
        if thread is None:
            return Removed()
        del self._threads[thread.agent][thread.name]
        gone = Removed(threads=1, turns=len(thread.turns), vectors=self._drop_vectors(thread))
        self._changed(thread.person)
        return gone

    async def facts(
        self, person: Person, *, after: str | None = None, limit: int = 100
    ) -> Page[Fact]:
        before = float("inf") if after is None else int(after)
        changed = reversed(self._facts.get(person, {}).values())
        behind = (fact for fact in changed if fact.id < before)
        found = [replace(fact, earlier=()) for fact, _ in zip(behind, range(limit + 1))]  # noqa: B905 - the range ends it
        return _page(found, limit, [str(fact.id) for fact in found])

    async def fact(self, person: Person, name: str) -> Fact | None:
        return self._facts.get(person, {}).get(name)

    async def put_fact(
        self,
        person: Person,
        name: str,
        value: str,
        *,
        expect: int | None,
        thread: str = "",
        seq: int = 0,
    ) -> Fact:
        check_fact_owner(person)
        before = self._facts.get(person, {}).get(name)
        actual = before.version if before else 0
        if expect is not None and expect != actual:
            raise VersionConflict(name, expect, actual)
        if before is not None and before.value == value:
            return before
        now = self._now()
        created, earlier = (before.created, before.earlier) if before else (now, ())
        if before is not None:
            earlier += (Earlier(before.value, actual, before.thread, before.seq, before.updated),)
            self._drop_fact(person, name)
        fact = Fact(self._next(), name, value, actual + 1, thread, seq, created, now, earlier)
        self._facts.setdefault(person, {})[name] = fact
        self._changed(person)
        return fact

    async def delete_fact(self, person: Person, name: str) -> bool:
        found = name in self._facts.get(person, {})
        if found:
            self._drop_fact(person, name)
            self._changed(person)
        return found

    async def put_vectors(self, person: Person, vectors: Sequence[Vector]) -> None:
        check_vectors(vectors)
        known = {
            "turn": {said.id for thread in self._threads_of(person) for said in thread.turns},
            "fact": {fact.id for fact in self._facts.get(person, {}).values()},
        }
        kept = {vector.id: vector for vector in vectors if vector.id in known[vector.kind]}
        if kept:
            self._vectors.setdefault(person, {}).update(kept)
            self._changed(person)

    async def vectors_of(
        self, person: Person, *, after: str | None = None, limit: int = 5000
    ) -> Page[Vector]:
        kept = self._vectors.get(person, {})
        numbers = sorted(kept)
        start = 0 if after is None else bisect_right(numbers, int(after))
        found = numbers[start : start + limit + 1]
        page = _page(found, limit, [str(number) for number in found])
        return Page([kept[number] for number in page.items], page.after)

    async def forget_user(
        self, service: str, user: str, *, agent: str | None = None, dry_run: bool = False
    ) -> Removed:
        check_forgotten(user)
        gone = Removed()
        for person in list(self._versions):
            if (person.service, person.user) == (service, user) and agent in (None, person.agent):
                gone = gone + self._everything_of(person)
                if not dry_run:
                    self._forget(person)
        return gone

    async def version(self, person: Person) -> int:
        return self._versions.get(person, 0)

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _next(self) -> int:
        """One counter for ids, versions and the order of activity: none is ever given twice."""
        self._last += 1
        return self._last

    def _changed(self, person: Person) -> None:
        self._versions[person] = self._next()

    def _find(self, place: Place) -> _Thread | None:
        thread = self._threads.get((place.service, place.agent), {}).get(place.thread)
        if thread is None or place.user not in ("", thread.user):
            return None
        return thread

    def _worked_on(self, place: Place) -> _Thread:
        """The thread to write to, now the last active of its agent, and whose it is settled."""
        threads = self._threads.setdefault((place.service, place.agent), {})
        thread, now = threads.pop(place.thread, None), self._now()
        if thread is None:
            agent = (place.service, place.agent)
            thread = _Thread(agent, place.thread, place.user, now, now, 0)
            self._changed(thread.person)
        elif place.user and not thread.user:
            self._attribute(thread, place.user)
        thread.active, thread.stamp = now, self._next()
        thread.version += 1
        threads[place.thread] = thread
        return thread

    def _attribute(self, thread: _Thread, user: str) -> None:
        nobody = self._vectors.get(thread.person, {})
        moved = {said.id: nobody.pop(said.id) for said in thread.turns if said.id in nobody}
        self._changed(thread.person)
        thread.user = user
        self._vectors.setdefault(thread.person, {}).update(moved)
        self._changed(thread.person)

    def _threads_of(self, person: Person) -> list[_Thread]:
        threads = self._threads.get((person.service, person.agent), {}).values()
        return [thread for thread in threads if thread.user == person.user]

    def _drop_vectors(self, thread: _Thread) -> int:
        kept = self._vectors.get(thread.person, {})
        return sum(kept.pop(said.id, None) is not None for said in thread.turns)

    def _drop_fact(self, person: Person, name: str) -> None:
        fact = self._facts[person].pop(name)
        self._vectors.get(person, {}).pop(fact.id, None)

    def _everything_of(self, person: Person) -> Removed:
        threads = self._threads_of(person)
        return Removed(
            threads=len(threads),
            turns=sum(len(thread.turns) for thread in threads),
            facts=len(self._facts.get(person, {})),
            vectors=len(self._vectors.get(person, {})),
        )

    def _forget(self, person: Person) -> None:
        for thread in self._threads_of(person):
            del self._threads[thread.agent][thread.name]
        self._facts.pop(person, None)
        self._vectors.pop(person, None)
        del self._versions[person]


def _page(found: list[T], limit: int, cursors: list[str]) -> Page[T]:
    """A page of at most `limit`; one more was looked for, to know whether there are more."""
    return Page(found[:limit], cursors[limit - 1] if len(found) > limit else None)
