"""The record of agents: threads, the turns said on them, facts about people, and vectors.

Everything is addressed by a *service*, an *agent* (its `agentId`), a *thread* and a *user*. Ids
are any text and compared exactly: no look-alike, wildcard, prefix or separator makes two of them
one. The user is part of the query in the store, never a filter behind it; "" is nobody, and
nobody's turns are found by no question about a person.

The working context of a thread is not here: it is a log of the key-value store beside it
(`flowrt.storage.protocol`), and `flowrt.memory.agent_memory` puts the two together.

Versions are as in `KeyValue`: 1 when created, one more with every change, `expect=0` creates,
`expect=n` wants that version, and anything else raises `VersionConflict` and changes nothing.
Appends of turns want none: they never conflict, and their numbers come from the store.

Times are seconds since 1970, given by the store's clock, for show: order comes from `seq` and `id`.
A write that is cancelled happens whole or not at all. Every method may raise `StoreUnavailable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

Role = Literal["user", "assistant"]
T = TypeVar("T")


class Place(NamedTuple):
    """A thread of an agent. `user` is who is on the other side, "" where nobody is named."""

    service: str
    agent: str
    thread: str
    user: str = ""


class Person(NamedTuple):
    """Somebody whom an agent knows."""

    service: str
    agent: str
    user: str


@dataclass(frozen=True, slots=True)
class NewTurn:
    """What was said, verbatim. `tokens` is an estimate; `attrs` is JSON."""

    role: Role
    text: str
    tokens: int = 0
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as recorded. `seq` counts from 1 within its thread; `id` rises over all of a store."""

    id: int
    thread: str
    user: str
    seq: int
    role: Role
    text: str
    tokens: int
    attrs: dict[str, Any]
    at: float


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """A thread: whose it is, what it is called, how much was said and when."""

    agent: str
    thread: str
    user: str
    title: str
    turns: int
    version: int
    created: float
    active: float


@dataclass(frozen=True, slots=True)
class Earlier:
    """A value that a fact had before, and where it came from."""

    value: str
    version: int
    thread: str
    seq: int
    at: float


@dataclass(frozen=True, slots=True)
class Fact:
    """Something an agent keeps about a person.

    `id` is a new one with each value, so that what is known by it (a vector, a place in a listing)
    is never of an older value; like a turn's, it rises and is never given again. `thread` and
    `seq` are the turn that the newest value came from. `earlier` are the values before, oldest
    first; only `fact` gives them, so that a change costs the same however often there was one.
    """

    id: int
    name: str
    value: str
    version: int
    thread: str
    seq: int
    created: float
    updated: float
    earlier: tuple[Earlier, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    """An embedding of a turn or of a fact: `id` is that one's, `data` are little-endian float32."""

    kind: Literal["turn", "fact"]
    id: int
    model: str
    data: bytes

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return len(self.data) // 4


@dataclass(frozen=True, slots=True)
class IndexPart:
    """What a search made of all turns of a person with ids from `first` to `last`; its own form."""

    first: int
    last: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a listing. `after` continues it; None on the last part."""

    items: list[T]
    after: str | None


@dataclass(frozen=True, slots=True)
class Removed:
    """A receipt: how many of each were removed, or would be. Never what they were."""

    threads: int = 0
    turns: int = 0
    facts: int = 0
    vectors: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(
            self.threads + other.threads,
            self.turns + other.turns,
            self.facts + other.facts,
            self.vectors + other.vectors,
        )


class AgentStore(Protocol):
    """The record of agents in one store; opened and closed with the store it belongs to."""

    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        """Record turns at the end of a thread, in one piece, and give them with their numbers.

        Creates the thread. The first write that names a user makes the thread theirs, with the
        turns it has; a later one never changes that, and its turns are recorded under the thread's
        user. Costs what is new, not what is stored. No turns change nothing. Raises `ValueError`
        for `attrs` that are not JSON, before anything is written.
        """
        ...

    async def touch(self, place: Place) -> ThreadInfo:
        """Note that the thread was worked on, without recording a turn; creates it.

        A write like any other: the first that names a user makes the thread theirs.
        """
        ...

    async def turns(
        self, place: Place, *, after: int = 0, limit: int = 500, newest_first: bool = False
    ) -> Page[Turn]:
        """The turns of a thread behind sequence number `after` (before it, newest first).

        The `user` of `place` is asked for only where it is not "".
        """
        ...

    async def turns_of(self, person: Person, *, after: int = 0, limit: int = 5000) -> Page[Turn]:
        """The turns of all threads of a person in the order of their ids, behind `after`.

        A person "" asks for the turns that belong to nobody.
        """
        ...

    async def thread(self, place: Place) -> ThreadInfo | None:
        """What is known of a thread; None where it is another user's than the one asked for."""
        ...

    async def threads(
        self,
        service: str,
        agent: str,
        *,
        user: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[ThreadInfo]:
        """Threads of an agent, the last active first. `user` None: of everybody and nobody.

        Read page by page, none is given twice; one that is worked on meanwhile moves to the front.
        """
        ...

    async def agents(self, service: str) -> list[str]:
        """The ids of the agents that have anything, sorted."""
        ...

    async def users(self, service: str, agent: str) -> list[str]:
        """The users that have a thread or a fact with an agent, sorted; without ""."""
        ...

    async def set_title(self, place: Place, title: str) -> None:
        """Name a thread. Nothing where there is no such thread, or it is another user's."""
        ...

    async def delete_thread(self, place: Place) -> Removed:
        """Remove a thread with its turns and their vectors; never the facts that came from it.

        Nothing where it is another user's than the one asked for.
        """
        ...

    async def facts(
        self, person: Person, *, after: str | None = None, limit: int = 100
    ) -> Page[Fact]:
        """What is known about a person, the last changed first."""
        ...

    async def fact(self, person: Person, name: str) -> Fact | None:
        """One fact, with its earlier values."""
        ...

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
        """Create or change a fact; the value before is kept among the earlier ones, its vector not.

        Gives the fact without its earlier values. The same value again changes nothing. Raises
        `ValueError` for a person "": a fact about nobody would be everybody's.
        """
        ...

    async def delete_fact(self, person: Person, name: str) -> bool:
        """Remove a fact with its earlier values and its vector; whether there was one."""
        ...

    async def put_vectors(self, person: Person, vectors: Sequence[Vector]) -> None:
        """Keep vectors, each over the one its turn or fact had.

        None is kept of a turn or fact that is gone or is not this person's.
        """
        ...

    async def vectors_of(
        self, person: Person, *, after: str | None = None, limit: int = 5000
    ) -> Page[Vector]:
        """The vectors of a person's turns and facts."""
        ...

    async def forget_user(
        self, service: str, user: str, *, agent: str | None = None, dry_run: bool = False
    ) -> Removed:
        """Remove everything of a person: threads, turns, facts with earlier values, vectors.

        In one agent or in all. Nothing of the text stays in the store's files. Raises `ValueError`
        for a `user` "".
        """
        ...

    async def version(self, person: Person) -> int:
        """A number that changes with every change of a person's turns, facts or vectors.

        For caches: the same number, the same content. 0 for a person nobody knows, also once they
        are forgotten; no other number ever comes back.
        """
        ...

    async def epoch(self, person: Person) -> int:
        """A number that stays while a person's turns only grow behind those there are.

        It changes when turns go, or come with a thread that becomes the person's. 0 and other
        numbers are as for `version`.
        """
        ...

    async def put_part(self, person: Person, part: IndexPart, *, epoch: int) -> bool:
        """Keep a part of an index over all that it overlaps; whether it was kept.

        Not where `epoch` is no longer the person's: the part would hold what was removed since. A
        part goes with any turn of its range that goes or comes. It is a copy: a store may let it
        go at any time, or keep none.
        """
        ...

    async def parts(self, person: Person, *, after: int = 0, limit: int = 16) -> Page[IndexPart]:
        """The parts of a person whose `first` is above `after`, in that order."""
        ...


@runtime_checkable
class KeepsAgents(Protocol):
    """A key-value store that keeps the record of agents too, in the same place."""

    def agents(self) -> AgentStore:
        """The record, open while the store is."""
        ...


@runtime_checkable
class Dated(Protocol):
    """A record that takes what was kept elsewhere, with the times it had there."""

    def dated(self, now: Callable[[], float]) -> AgentStore:
        """The same record, but that what is written through it is of the time that `now` gives."""
        ...
