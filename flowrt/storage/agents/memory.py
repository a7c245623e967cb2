"""The record of agents in the process's own memory, beside the keys of a `MemoryStore`."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from sys import getsizeof
from typing import TypeVar

from flowrt.clock import Clock, SystemClock
from flowrt.errors import StoreError, VersionConflict
from flowrt.storage.agents.memory_threads import THREAD_BYTES, Thread, turns_size
from flowrt.storage.agents.protocol import (
    Earlier,
    Fact,
    IndexPart,
    NewTurn,
    Page,
    Person,
    Place,
    Removed,
    ThreadInfo,
    Turn,
    Vector,
)
from flowrt.storage.agents.rules import check_fact_owner, check_forgotten, check_vectors
from flowrt.storage.encoding import encode_json
from flowrt.storage.evictions import Evictions

_FACT_BYTES = 600

T = TypeVar("T")
_Agent = tuple[str, str]


class MemoryAgentStore:
    """Keeps everything in memory; unbounded, or the most recently active `max_bytes` of it.

    Where it is bounded, the threads that were active the longest ago go; facts stay. What alone is
    larger is refused with `StoreError`. No method waits for anything, so each happens whole.
    """

    def __init__(
        self, clock: Clock | None = None, *, max_bytes: int | None = None, url: str = "memory:"
    ) -> None:
        self.url = url
        self._max_bytes = max_bytes
        self._clock = clock or SystemClock()
        self._last = 0
        # Threads of an agent in the order of their activity, the last active at the end.
        self._threads: dict[_Agent, dict[str, Thread]] = {}
        # Facts of a person in the order of their last change.
        self._facts: dict[Person, dict[str, Fact]] = {}
        self._vectors: dict[Person, dict[int, Vector]] = {}
        self._versions: dict[Person, int] = {}
        self._epochs: dict[Person, int] = {}
        self._bytes = 0
        self._thread_bytes = 0
        text = "the volatile tier is full; the record of the least recently active threads is gone"
        self.evictions = Evictions(text, max_bytes, self._clock)

    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        attrs = [encode_json(turn.attrs) for turn in turns]
        if not turns:
            return []
        size = turns_size(turns, attrs)
        thread = self._worked_on(place, size)
        self._grow(thread, size)
        added = thread.add(turns, attrs, self._next(len(turns)))
        self._changed(thread.person)
        return added

    async def touch(self, place: Place) -> ThreadInfo:
        return self._worked_on(place).info()

    async def turns(
        self, place: Place, *, after: int = 0, limit: int = 500, newest_first: bool = False
    ) -> Page[Turn]:
        thread = self._find(place)
        if thread is None:
            return Page([], None)
        found = (thread.before if newest_first else thread.behind)(after, limit + 1)
        page = _page(found, limit, [str(said.seq) for said in found])
        return Page([thread.turn(said) for said in page.items], page.after)

    async def turns_of(self, person: Person, *, after: int = 0, limit: int = 5000) -> Page[Turn]:
        threads = self._worked_on_since(person, after)
        later = (thread.later(after, limit + 1) for thread in threads)
        # Ids differ, so no two turns are ever compared.
        found = list(islice(heapq.merge(*later), limit + 1))
        page = _page(found, limit, [str(number) for number, *_ in found])
        # Made for those of the page alone: of each thread at least one turn was looked at.
        return Page([thread.turn(said) for _, thread, said in page.items], page.after)

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
        behind = (
            thread
            for thread in reversed(self._threads.get((service, agent), {}).values())
            if thread.stamp < before and user in (None, thread.user)
        )
        found = list(islice(behind, limit + 1))
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
            self._grow(thread, getsizeof(title) - getsizeof(thread.title))
            thread.title = title
            thread.version += 1

    async def delete_thread(self, place: Place) -> Removed:
        thread = self._find(place)
        if thread is None:
            return Removed()
        vectors = self._drop_thread(thread)
        self._moved(thread.person)
        return Removed(threads=1, turns=len(thread.said), vectors=vectors)

    async def facts(
        self, person: Person, *, after: str | None = None, limit: int = 100
    ) -> Page[Fact]:
        before = float("inf") if after is None else int(after)
        changed = reversed(self._facts.get(person, {}).values())
        behind = (replace(fact, earlier=()) for fact in changed if fact.id < before)
        found = list(islice(behind, limit + 1))
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
            return replace(before, earlier=())
        now = self._now()
        fact = Fact(self._next(), name, value, actual + 1, thread, seq, now, now)
        self._make_room(_fact_size(fact))
        if before is not None:
            was = Earlier(before.value, actual, before.thread, before.seq, before.updated)
            fact = replace(fact, created=before.created, earlier=(*before.earlier, was))
            self._drop_fact(person, name)
        self._bytes += _fact_size(fact)
        self._facts.setdefault(person, {})[name] = fact
        self._changed(person)
        return replace(fact, earlier=())

    async def delete_fact(self, person: Person, name: str) -> bool:
        found = name in self._facts.get(person, {})
        if found:
            self._drop_fact(person, name)
            self._changed(person)
        return found

    async def put_vectors(self, person: Person, vectors: Sequence[Vector]) -> None:
        check_vectors(vectors)
        self._make_room(sum(getsizeof(vector.data) for vector in vectors))
        threads = self._threads_of(person)
        facts = {fact.id for fact in self._facts.get(person, {}).values()}
        kept = self._vectors.setdefault(person, {})
        for vector in vectors:
            was = kept.get(vector.id)
            more = getsizeof(vector.data) - (getsizeof(was.data) if was else 0)
            thread = next((one for one in threads if one.has(vector.id)), None)
            if vector.kind == "turn" and thread is not None:
                self._grow(thread, more)
            elif vector.kind == "fact" and vector.id in facts:
                self._bytes += more
            else:
                continue
            kept[vector.id] = vector
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
                gone += self._everything_of(person)
                if not dry_run:
                    self._forget(person)
        return gone

    async def version(self, person: Person) -> int:
        return self._versions.get(person, 0)

    async def epoch(self, person: Person) -> int:
        return self._epochs.get(person, 0)

    async def put_part(self, person: Person, part: IndexPart, *, epoch: int) -> bool:
        # Who asks for it lives as long as the store.
        return False

    async def parts(self, person: Person, *, after: int = 0, limit: int = 16) -> Page[IndexPart]:
        return Page([], None)

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _next(self, count: int = 1) -> int:
        """The first of `count` numbers; ids, versions and activity share them, none comes twice."""
        self._last += count
        return self._last - count + 1

    def _changed(self, person: Person) -> None:
        self._versions[person] = self._next()
        self._epochs.setdefault(person, self._versions[person])

    def _moved(self, person: Person) -> None:
        """Like `_changed`, where turns went or came from elsewhere."""
        self._changed(person)
        self._epochs[person] = self._versions[person]

    def _find(self, place: Place) -> Thread | None:
        thread = self._threads.get((place.service, place.agent), {}).get(place.thread)
        if thread is None or place.user not in ("", thread.user):
            return None
        return thread

    def _worked_on(self, place: Place, size: int = 0) -> Thread:
        """The thread to write `size` bytes to, now the last active, and whose it is settled."""
        known = self._find(place._replace(user=""))
        self._make_room(size + (0 if known else THREAD_BYTES), known)
        threads = self._threads.setdefault((place.service, place.agent), {})
        thread, now = threads.pop(place.thread, None), self._now()
        if thread is None:
            service, agent, name, user = place
            thread = Thread(service, agent, name, user, now, now)
            self._grow(thread, THREAD_BYTES)
            self._changed(thread.person)
        elif place.user and not thread.user:
            self._attribute(thread, place.user)
        thread.active, thread.stamp = now, self._next()
        thread.version += 1
        threads[place.thread] = thread
        return thread

    def _attribute(self, thread: Thread, user: str) -> None:
        nobody = self._vectors.get(thread.person, {})
        moved = {said.id: nobody.pop(said.id) for said in thread.said if said.id in nobody}
        self._moved(thread.person)
        thread.user = user
        self._vectors.setdefault(thread.person, {}).update(moved)
        self._moved(thread.person)

    def _threads_of(self, person: Person) -> list[Thread]:
        threads = self._threads.get((person.service, person.agent), {}).values()
        return [thread for thread in threads if thread.user == person.user]

    def _worked_on_since(self, person: Person, number: int) -> Iterator[Thread]:
        """The threads that may have turns with an id above `number`: a few of a long history."""
        for thread in reversed(self._threads.get((person.service, person.agent), {}).values()):
            if thread.user == person.user:
                yield thread
            # The turns of what was worked on before are older than this thread's last work.
            if thread.stamp <= number:
                return

    def _drop_thread(self, thread: Thread) -> int:
        """Remove a thread with the vectors of its turns; how many of those there were."""
        del self._threads[thread.service, thread.agent][thread.name]
        self._grow(thread, -thread.size)
        return self._drop_vectors(thread)

    def _drop_vectors(self, thread: Thread) -> int:
        kept = self._vectors.get(thread.person, {})
        return sum(kept.pop(said.id, None) is not None for said in thread.said)

    def _drop_fact(self, person: Person, name: str) -> None:
        fact = self._facts[person].pop(name)
        vector = self._vectors.get(person, {}).pop(fact.id, None)
        self._bytes -= _fact_size(fact) + (getsizeof(vector.data) if vector else 0)

    def _everything_of(self, person: Person) -> Removed:
        threads = self._threads_of(person)
        return Removed(
            threads=len(threads),
            turns=sum(len(thread.said) for thread in threads),
            facts=len(self._facts.get(person, {})),
            vectors=len(self._vectors.get(person, {})),
        )

    def _forget(self, person: Person) -> None:
        for thread in self._threads_of(person):
            self._drop_thread(thread)
        for name in list(self._facts.get(person, {})):
            self._drop_fact(person, name)
        self._facts.pop(person, None)
        self._vectors.pop(person, None)
        del self._versions[person]
        del self._epochs[person]

    def _grow(self, thread: Thread, size: int) -> None:
        thread.size += size
        self._thread_bytes += size
        self._bytes += size

    def _make_room(self, size: int, spared: Thread | None = None) -> None:
        """Let threads go, the longest inactive first, until `size` more bytes fit."""
        if self._max_bytes is None:
            return
        stays = self._bytes - self._thread_bytes + (spared.size if spared else 0)
        if stays + size > self._max_bytes:
            raise StoreError(
                f"the record of agents needs {stays + size} bytes, more than the {self._max_bytes} "
                f"of storage {self.url}; name a larger store, such as FLOWRT_VOLATILE=redis://…"
            )
        evicted = 0
        while self._bytes + size > self._max_bytes:
            oldest = self._oldest(spared)
            self._drop_thread(oldest)
            self._moved(oldest.person)
            evicted += 1
        self.evictions.add(evicted)

    def _oldest(self, spared: Thread | None) -> Thread:
        """The thread that was active the longest ago, but not `spared`."""
        firsts = (
            next((thread for thread in threads.values() if thread is not spared), None)
            for threads in self._threads.values()
        )
        return min((one for one in firsts if one is not None), key=lambda one: one.stamp)


def _fact_size(fact: Fact) -> int:
    values = [fact.value, *(earlier.value for earlier in fact.earlier)]
    return getsizeof(fact.name) + sum(map(getsizeof, values)) + _FACT_BYTES * len(values)


def _page(found: list[T], limit: int, cursors: list[str]) -> Page[T]:
    """A page of at most `limit`; one more was looked for, to know whether there are more."""
    return Page(found[:limit], cursors[limit - 1] if len(found) > limit else None)
