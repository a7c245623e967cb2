"""Putting an archive into a store, as it was: order, numbers and times."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from flowrt.errors import CallError
from flowrt.memory.agent_memory import archive_key, frame_key, working_key
from flowrt.memory.archive import (
    Archive,
    Conversation,
    FactFile,
    FactValue,
    ThreadFile,
    TurnLine,
    UserFile,
    stored,
)
from flowrt.memory.transcript import PREFIX
from flowrt.storage.agents.protocol import AgentStore, Dated, NewTurn, Person, Place, Turn
from flowrt.storage.tiers import Space


@dataclass(slots=True)
class Restored:
    """How much was added, and how many threads, contexts and facts stayed as the store had them."""

    threads: int = 0
    turns: int = 0
    contexts: int = 0
    facts: int = 0
    kept: int = 0

    def __add__(self, other: Restored) -> Restored:
        return Restored(
            self.threads + other.threads,
            self.turns + other.turns,
            self.contexts + other.contexts,
            self.facts + other.facts,
            self.kept + other.kept,
        )


class _Instant:
    """The time that is written next."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


class Restorer:
    """Restores into one tier of a service. Raises `CallError` where it cannot keep times."""

    def __init__(self, record: AgentStore, space: Space, service: str) -> None:
        self._now = _Instant()
        if not isinstance(record, Dated):
            raise CallError("this store cannot keep the times of what is imported")
        self._record = record
        self._dated = record.dated(self._now)
        self._space = space
        self._service = service
        self._done = Restored()

    async def taken(self, archive: Archive) -> list[str]:
        """What of an archive the store has something of already, in words."""
        taken = []
        for conversation in archive.conversations:
            if await self._stored(conversation):
                taken.append(f"thread {_name(conversation)!r}")
        for user in archive.users:
            for fact in user.facts:
                if await self._record.fact(self._person(user), fact.name) is not None:
                    taken.append(f"fact {fact.name!r} about {user.user!r}")
        return taken

    async def restore(self, archive: Archive) -> Restored:
        """Add what is missing. A thread or fact that is there in part, as an import leaves it that
        was cut off, is completed; one that went its own way stays as it is."""
        for frame in archive.frames:
            key = frame_key(frame.agent, frame.name)
            if await self._space.get(key) is None:
                await self._space.set(key, stored(frame.frame))
        threads = [(each.thread, each) for each in archive.conversations if each.thread]
        worked_on = await self._turns(sorted(threads, key=lambda each: each[0].created))
        for user in archive.users:
            await self._facts(user)
        for conversation in archive.conversations:
            await self._context(conversation)
        for thread in sorted(worked_on, key=lambda each: each.active):
            self._now.at = thread.active
            await self._dated.touch(self._place(thread))
        return self._done

    async def _turns(self, threads: list[tuple[ThreadFile, Conversation]]) -> list[ThreadFile]:
        """Record turns in the order in which they were said, over all threads; the threads that
        something was added to."""
        missing: list[tuple[ThreadFile, list[TurnLine]]] = []
        for thread, conversation in threads:
            lacking = await self._begin(thread, conversation)
            if lacking is None:
                self._done.kept += 1
            else:
                missing.append((thread, lacking))
        for number, at, spoken in _in_order([turns for _, turns in missing]):
            self._now.at = at
            said = [NewTurn(each.role, each.text, each.tokens, each.attrs) for each in spoken]
            await self._dated.append_turns(self._place(missing[number][0]), said)
            self._done.turns += len(said)
        for thread, _ in missing:
            if thread.title:
                await self._dated.set_title(self._place(thread), thread.title)
        return [thread for thread, _ in missing]

    async def _begin(self, thread: ThreadFile, conversation: Conversation) -> list[TurnLine] | None:
        """Have the thread; the turns it lacks. None where it is whole, or another one."""
        place, turns = self._place(thread), conversation.turns
        anybodys = place._replace(user="")
        if await self._record.thread(anybodys) is None:
            await self._archived(thread, conversation)
            self._now.at = thread.created
            await self._dated.touch(place)
            self._done.threads += 1
            return turns
        known = [(each.role, each.text) async for each in _turns_of(self._record, anybodys)]
        said = [(each.role, each.text) for each in turns]
        if known == said[: len(known)]:
            await self._archived(thread, conversation)
        return turns[len(known) :] if _rest(known, said) else None

    async def _archived(self, thread: ThreadFile, conversation: Conversation) -> None:
        key = archive_key(thread.agent, thread.thread)
        if conversation.archived and await self._space.read_log(key, entries=False) is None:
            await self._space.append(key, [stored(each) for each in conversation.archived])

    async def _facts(self, user: UserFile) -> None:
        """Earlier values first, then the newest ones in the order in which they came to be."""
        person, missing = self._person(user), list[tuple[FactFile, list[FactValue]]]()
        for fact in reversed(user.facts):
            known = await self._record.fact(person, fact.name)
            values = [] if known is None else [*(was.value for was in known.earlier), known.value]
            if _rest(values, [each.value for each in fact.values]):
                missing.append((fact, fact.values[len(values) :]))
            else:
                self._done.kept += 1
        for fact, values_left in missing:
            for value in values_left[:-1]:
                await self._put(person, fact, value)
        for fact, values_left in missing:
            await self._put(person, fact, values_left[-1])
            self._done.facts += 1

    async def _put(self, person: Person, fact: FactFile, value: FactValue) -> None:
        self._now.at = value.at
        await self._dated.put_fact(
            person, fact.name, value.value, expect=None, thread=value.thread, seq=value.seq
        )

    async def _context(self, conversation: Conversation) -> None:
        working = conversation.working
        if working is None:
            return
        key = _key(conversation)
        if await self._space.read_log(key, entries=False) is not None:
            self._done.kept += 1
            return
        await self._space.rewrite(key, working.entries, head=working.head, expect=0)
        self._done.contexts += 1

    async def _stored(self, conversation: Conversation) -> bool:
        if await self._space.read_log(_key(conversation), entries=False) is not None:
            return True
        if conversation.thread is None:
            return False
        place = self._place(conversation.thread)._replace(user="")
        return await self._record.thread(place) is not None

    def _place(self, thread: ThreadFile) -> Place:
        return Place(self._service, thread.agent, thread.thread, thread.user)

    def _person(self, user: UserFile) -> Person:
        return Person(self._service, user.agent, user.user)


def _name(conversation: Conversation) -> str:
    described = conversation.thread or conversation.working
    return described.thread if described else ""


def _key(conversation: Conversation) -> str:
    described = conversation.thread or conversation.working
    assert described is not None
    if described.agent is None:
        return PREFIX + described.thread
    return working_key(described.agent, described.thread)


def _rest(known: Sequence[object], all_: Sequence[object]) -> bool:
    """Whether `known` is the beginning of `all_`, and not the whole of it."""
    return len(known) < len(all_) and all(a == b for a, b in zip(known, all_, strict=False))


def _in_order(threads: list[list[TurnLine]]) -> Iterator[tuple[int, float, list[TurnLine]]]:
    """Turns of several threads in the order of their times, those of one thread in its own: the
    number of the thread, the time, and the turns that it had at that time."""
    timed = []
    for number, turns in enumerate(threads):
        latest = 0.0
        for turn in turns:
            # A clock may have been set back between two of them.
            latest = max(latest, turn.at)
            timed.append((latest, number, turn.seq, turn))
    timed.sort(key=lambda each: each[:3])
    for (number, at), group in groupby(timed, key=lambda each: (each[1], each[3].at)):
        yield number, at, [each[3] for each in group]


async def _turns_of(record: AgentStore, place: Place) -> AsyncIterator[Turn]:
    after = 0
    while True:
        page = await record.turns(place, after=after)
        for turn in page.items:
            yield turn
        if page.after is None:
            return
        after = int(page.after)
