"""The record of agents as simply as it can be said, to hold the stores to.

Also the work that is done on it: `work` draws one piece, `done` does it on a store and gives what
came back, `Model.does` gives what has to come back.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from flowrt.errors import VersionConflict
from flowrt.storage.agents.protocol import (
    AgentStore,
    NewTurn,
    Page,
    Person,
    Place,
    ThreadInfo,
    Turn,
    Vector,
)

HOMES = (("s", "a:b"), ("s:a", "b"))
THREADS = ("t", "T", "t:1")
USERS = ("", "u", "U")
NAMES = ("n", "N")
TEXTS = ("", "yes", "no\nand 'so' on", "\0 \ud800 é")

T = TypeVar("T")
Choose = Callable[[Sequence[Any]], Any]


class Work(NamedTuple):
    """One call. `expect` is a version, None, or the words "as read"."""

    what: str
    home: tuple[str, str]
    thread: str = ""
    user: str = ""
    name: str = ""
    text: str = ""
    texts: tuple[str, ...] = ()
    expect: Any = None


def work(choose: Choose) -> Work:
    """A piece of work, drawn."""
    kinds = ("append", "append", "append", "touch", "title", "put", "put", "put")
    what = choose((*kinds, "embed", "embed", "unput", "delete", "forget"))
    home, user = choose((HOMES[0], HOMES[0], *HOMES)), choose(("u", *USERS))
    if what in ("put", "unput"):
        name, text = choose(NAMES), choose(TEXTS)
        return Work(
            what,
            home,
            user=user or "u",
            name=name,
            text=text,
            expect=choose((None, 0, 1, "as read")) if what == "put" else None,
        )
    if what in ("embed", "forget"):
        return Work(what, home, user=user if what == "embed" else user or "u")
    texts = tuple(choose(TEXTS) for _ in range(choose((1, 2, 3)))) if what == "append" else ()
    return Work(what, home, choose(THREADS), user, text=choose(TEXTS), texts=texts)


@dataclass
class _Thread:
    user: str
    order: int = 0
    title: str = ""
    version: int = 0
    said: list[str] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    embedded: int = 0


@dataclass
class _Fact:
    order: int
    values: list[str]
    embedded: bool = False


@dataclass
class Model:
    """What is recorded. `ids` are not the store's, but in the same order."""

    threads: dict[tuple[tuple[str, str], str], _Thread] = field(default_factory=dict)
    facts: dict[tuple[tuple[str, str], str], dict[str, _Fact]] = field(default_factory=dict)
    last: int = 0

    def does(self, work: Work) -> Any:
        """Do it, and give what the store has to answer."""
        answer: Any = getattr(self, f"_{work.what}")(work)
        return answer

    def read(self, work: Work) -> Work:
        """The same work on the version that is stored now."""
        if work.expect != "as read":
            return work
        fact = self.facts.get((work.home, work.user), {}).get(work.name)
        return work._replace(expect=len(fact.values) if fact else 0)

    def _next(self) -> int:
        self.last += 1
        return self.last

    def _find(self, work: Work) -> _Thread | None:
        thread = self.threads.get((work.home, work.thread))
        return thread if thread and work.user in ("", thread.user) else None

    def _worked_on(self, work: Work) -> _Thread:
        thread = self.threads.setdefault((work.home, work.thread), _Thread(work.user))
        thread.user = thread.user or work.user
        thread.version += 1
        return thread

    def _append(self, work: Work) -> Any:
        thread = self._worked_on(work)
        thread.said += work.texts
        thread.ids += [self._next() for _ in work.texts]
        thread.order = self._next()
        first = len(thread.said) - len(work.texts) + 1
        return [(thread.user, first + at, text) for at, text in enumerate(work.texts)]

    def _touch(self, work: Work) -> Any:
        thread = self._worked_on(work)
        thread.order = self._next()
        return (work.thread, thread.user, thread.title, thread.version, len(thread.said))

    def _title(self, work: Work) -> None:
        thread = self._find(work)
        if thread:
            thread.title = work.text
            thread.version += 1

    def _delete(self, work: Work) -> Any:
        thread = self._find(work)
        if not thread:
            return (0, 0, 0, 0)
        del self.threads[work.home, work.thread]
        return (1, len(thread.said), 0, thread.embedded)

    def _put(self, work: Work) -> Any:
        facts = self.facts.setdefault((work.home, work.user), {})
        fact = facts.get(work.name)
        version = len(fact.values) if fact else 0
        if work.expect is not None and work.expect != version:
            return ("conflict", version)
        if not fact or fact.values[-1] != work.text:
            values = [*(fact.values if fact else ()), work.text]
            fact = facts[work.name] = _Fact(self._next(), values)
        return (len(fact.values), work.text)

    def _unput(self, work: Work) -> bool:
        return self.facts.get((work.home, work.user), {}).pop(work.name, None) is not None

    def _embed(self, work: Work) -> None:
        for thread in self._of(work.home, work.user).values():
            thread.embedded = len(thread.said)
        for fact in self.facts.get((work.home, work.user), {}).values():
            fact.embedded = True

    def _forget(self, work: Work) -> Any:
        threads = self._of(work.home, work.user)
        facts = self.facts.pop((work.home, work.user), {})
        for name in threads:
            del self.threads[work.home, name]
        turns = sum(len(thread.said) for thread in threads.values())
        vectors = sum(thread.embedded for thread in threads.values())
        vectors += sum(fact.embedded for fact in facts.values())
        return (len(threads), turns, len(facts), vectors)

    def _of(self, home: tuple[str, str], user: str | None) -> dict[str, _Thread]:
        """Threads of a home, or of one user there; the last active first."""
        found = [
            (name, thread)
            for (at, name), thread in self.threads.items()
            if at == home and user in (None, thread.user)
        ]
        return dict(sorted(found, key=lambda pair: -pair[1].order))

    def state(self) -> dict[str, Any]:
        """All that can be read, as `state` below gives it."""
        found: dict[str, Any] = {}
        for home in HOMES:
            threads = self._of(home, None)
            users = {thread.user for thread in threads.values()}
            users |= {user for (at, user), facts in self.facts.items() if at == home and facts}
            found[f"{home}"] = (bool(users), sorted(users - {""}), self._listed(threads))
            for user in USERS:
                found[f"{home} {user}"] = self._person(home, user)
        return found

    def _listed(self, threads: dict[str, _Thread]) -> list[Any]:
        return [(name, t.user, t.title, t.version, len(t.said)) for name, t in threads.items()]

    def _person(self, home: tuple[str, str], user: str) -> Any:
        threads, facts = self._of(home, user), self.facts.get((home, user), {})
        turns = sorted(
            (number, name, seq, text)
            for name, thread in threads.items()
            for seq, (number, text) in enumerate(zip(thread.ids, thread.said, strict=True), 1)
        )
        vectors = {(name, seq) for name, t in threads.items() for seq in range(1, t.embedded + 1)}
        vectors |= {(name, "fact") for name, fact in facts.items() if fact.embedded}
        changed = sorted(facts.items(), key=lambda pair: -pair[1].order)
        return (
            self._listed(threads),
            [turn[1:] for turn in turns],
            [(name, tuple(fact.values)) for name, fact in changed],
            vectors,
        )


def _place(work: Work, service: str) -> Place:
    return Place(f"{service}{work.home[0]}", work.home[1], work.thread, work.user)


async def done(work: Work, store: AgentStore, service: str) -> Any:
    """Do it on a store; what came back, without numbers and times."""
    place = _place(work, service)
    person = Person(place.service, place.agent, place.user)
    match work.what:
        case "append":
            turns = await store.append_turns(place, [NewTurn("user", text) for text in work.texts])
            return [(turn.user, turn.seq, turn.text) for turn in turns]
        case "touch":
            info = await store.touch(place)
            return (info.thread, info.user, info.title, info.version, info.turns)
        case "title":
            await store.set_title(place, work.text)
        case "delete":
            gone = await store.delete_thread(place)
            return (gone.threads, gone.turns, gone.facts, gone.vectors)
        case "put":
            try:
                fact = await store.put_fact(person, work.name, work.text, expect=work.expect)
            except VersionConflict as conflict:
                return ("conflict", conflict.actual)
            return (fact.version, fact.value)
        case "unput":
            return await store.delete_fact(person, work.name)
        case "embed":
            await _embed(store, person)
        case "forget":
            gone = await store.forget_user(person.service, person.user, agent=person.agent)
            return (gone.threads, gone.turns, gone.facts, gone.vectors)
    return None


async def _embed(store: AgentStore, person: Person) -> None:
    turns, facts = await store.turns_of(person), await store.facts(person)
    numbers = [("turn", turn.id) for turn in turns.items]
    numbers += [("fact", fact.id) for fact in facts.items]
    vectors = [Vector(kind, at, "m", struct.pack("<f", at)) for kind, at in numbers]  # type: ignore[arg-type]
    await store.put_vectors(person, vectors)


async def state(store: AgentStore, service: str) -> dict[str, Any]:
    """All that can be read, having checked that the numbers of the store are in order."""
    found: dict[str, Any] = {}
    for home in HOMES:
        owner, agent = f"{service}{home[0]}", home[1]
        found[f"{home}"] = await _home(store, owner, agent)
        for user in USERS:
            found[f"{home} {user}"] = await _person(store, Person(owner, agent, user))
    return found


async def _home(store: AgentStore, service: str, agent: str) -> Any:
    known = agent in await store.agents(service)
    listed = await _all(lambda at: store.threads(service, agent, after=at, limit=2))
    return (known, await store.users(service, agent), _listed(listed))


def _listed(items: list[ThreadInfo]) -> list[Any]:
    return [(info.thread, info.user, info.title, info.version, info.turns) for info in items]


async def _all(page: Callable[[str | None], Awaitable[Page[T]]]) -> list[T]:
    """A listing, page by page."""
    found = await page(None)
    items = found.items
    while found.after is not None:
        found = await page(found.after)
        items += found.items
    return items


async def _person(store: AgentStore, person: Person) -> Any:
    service, agent, user = person
    threads = await _all(lambda at: store.threads(service, agent, user=user, after=at, limit=1))
    turns = await _all(lambda at: store.turns_of(person, after=int(at or 0), limit=3))
    numbers = [turn.id for turn in turns]
    assert sorted(set(numbers)) == numbers
    facts = [
        fact
        for listed in await _all(lambda at: store.facts(person, after=at, limit=1))
        if (fact := await store.fact(person, listed.name))
    ]
    for fact in facts:
        versions = [was.version for was in fact.earlier] + [fact.version]
        assert list(range(1, len(versions) + 1)) == versions
    for info in threads:
        await _check_thread(store, Place(*person[:2], info.thread, user), turns, info.turns)
    of = {turn.id: (turn.thread, turn.seq) for turn in turns}
    embedded = await _all(lambda at: store.vectors_of(person, after=at, limit=2))
    for vector in embedded:
        assert struct.pack("<f", vector.id) == vector.data
    by_number: dict[int, Any] = of | {fact.id: (fact.name, "fact") for fact in facts}
    return (
        _listed(threads),
        [(turn.thread, turn.seq, turn.text) for turn in turns],
        [(fact.name, (*(was.value for was in fact.earlier), fact.value)) for fact in facts],
        {by_number[vector.id] for vector in embedded},
    )


async def _check_thread(store: AgentStore, place: Place, turns: list[Turn], count: int) -> None:
    """Read a thread from both ends: the same turns as those of the person, without a gap."""
    mine = [turn for turn in turns if turn.thread == place.thread]
    assert list(range(1, count + 1)) == [turn.seq for turn in mine]
    assert mine == await _all(lambda at: store.turns(place, after=int(at or 0), limit=4))
    back = await _all(lambda at: store.turns(place, after=int(at or 0), limit=2, newest_first=True))
    assert mine == back[::-1]
