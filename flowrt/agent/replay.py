"""The request that a model saw at one turn, put together again from what is kept of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flowrt.agent.preamble import name_check, preamble_of
from flowrt.agent.showing import BEFORE
from flowrt.errors import FlowrtError, StoreError
from flowrt.llm.request import build_request
from flowrt.memory.agent_memory import AgentMemory, Context
from flowrt.memory.entry import Entry
from flowrt.memory.shown import Archived, Call, Frame, Notes, Shown, numbers_of, read_archived
from flowrt.storage.agents.protocol import Fact, Person, Place, Turn

OLDER = (
    "the record does not say what was in it: it was recorded by an older flowrt, or by a run that "
    "died"
)
NOT_SHOWN = "the model was not asked again after this was said"
DIED = "it was first asked by a run that died, which recorded no request"
REUSED = "the context that it was made of was never stored: the run died, or two ran at once"
LOST = "messages that stood in it are stored nowhere"
TWICE = "two runs wrote this thread at once, and which messages stood in it is not known"
NO_FRAME = "the system prompt, the tools and the model"
FILES = "the files that came with the question (the block has no keepAttachments)"
FORGOTTEN = "the notes about the user: some are forgotten since, or are worded otherwise now"


class Unknown(FlowrtError):
    """The request cannot be put together; the text says why."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A request in the form of the Messages API, as the connector was given it.

    It is the `call`th of the `calls` of its exchange. `lacking` is what is not in it and was;
    empty, the request is exact. `request` is None where it cannot be put together, and `unknown`
    says why.
    """

    request: dict[str, Any] | None
    unknown: str = ""
    lacking: list[str] = field(default_factory=list)
    call: int = 0
    calls: int = 0
    connector: str = ""

    @property
    def exact(self) -> bool:
        """Whether it is the request to the last byte."""
        return self.request is not None and not self.lacking


@dataclass(frozen=True, slots=True)
class Exchanges:
    """The exchanges of a thread whose requests the record tells of, by their opening turns."""

    shown: dict[int, Shown]

    @classmethod
    def of(cls, turns: Sequence[Turn]) -> Exchanges:
        """Raises `StoreError` for a record that says something else."""
        try:
            return cls({
                turn.seq: Shown.from_json(turn.attrs["shown"])
                for turn in turns
                if "shown" in turn.attrs
            })  # fmt: skip
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"what the record says of requests cannot be read: {error!r}"
            ) from error

    def find(self, seq: int) -> tuple[int, Shown]:
        """The exchange of a turn, and the turn that opened it. Raises `Unknown`."""
        for opening, shown in self.shown.items():
            if opening <= seq < opening + shown.turns:
                return opening, shown
        raise Unknown(OLDER)

    def reused_from(self, opening: int) -> int | None:
        """The first number that a later exchange gave; None where there is no later one."""
        own = [shown.own[0] for seq, shown in self.shown.items() if seq > opening]
        return min(own, default=None)


def call_at(opening: int, shown: Shown, turn: Turn) -> int:
    """Which call a turn stands for: a question the first that held it, an answer the one that it
    answers. Raises `Unknown`."""
    if turn.role == "assistant":
        return len(shown.calls) - 1
    place = turn.seq - opening
    first = shown.first[place] if place < len(shown.first) else len(shown.calls)
    if first == BEFORE:
        raise Unknown(DIED)
    if first >= len(shown.calls):
        raise Unknown(NOT_SHOWN)
    return first


class Messages:
    """The messages of a thread by their numbers: of its working context, and of its archive."""

    def __init__(self, working: Sequence[Entry], archived: Sequence[Entry]) -> None:
        self._entries: dict[int, Entry] = {}
        self._twice: set[int] = set()
        for entry in (*archived, *working):
            if entry.number is None:
                continue
            known = self._entries.setdefault(entry.number, entry)
            # A run that died may have archived what the context still has.
            if known.encode() != entry.encode():
                self._twice.add(entry.number)

    def of(self, call: Call, reused_from: int | None) -> list[Entry]:
        """The messages of a call. Raises `Unknown`."""
        numbers = list(numbers_of(call.messages))
        if reused_from is not None and max(numbers, default=0) >= reused_from:
            raise Unknown(REUSED)
        if not self._twice.isdisjoint(numbers):
            raise Unknown(TWICE)
        if not self._entries.keys() >= set(numbers):
            raise Unknown(LOST)
        return [self._entries[number] for number in numbers]


async def replay(
    memory: AgentMemory, facts: AgentMemory, place: Place, turn: Turn, *, context: Context
) -> Replayed:
    """The request at a turn of a thread.

    `memory` is of the thread's tier, `facts` of the persistent one, `context` what the runs had
    from `forwardContext`. Raises `StoreError`.
    """
    turns = [each async for each in _turns(memory, place, context)]
    try:
        opening, shown = Exchanges.of(turns).find(turn.seq)
        number = call_at(opening, shown, turn)
        archived = _archived(await memory.archived(place, context=context))
        known = Messages(await _working(memory, place, context), archived.entries)
        entries = known.of(shown.calls[number], Exchanges.of(turns).reused_from(opening))
    except Unknown as unknown:
        return Replayed(None, str(unknown))
    lacking = [FILES] if shown.calls[number].files else []
    person = Person(place.service, place.agent, turn.user)
    preamble = await _preamble(facts, person, archived.notes, shown.notes, context)
    if preamble is None:
        lacking.append(FORGOTTEN)
    kept = await memory.frame(place, shown.frame, context=context)
    frame = _frame(kept) if kept is not None else None
    if frame is None:
        lacking.append(NO_FRAME)
    request = _request(frame, entries, shown.calls[number].stored, preamble)
    calls = len(shown.calls)
    connector = frame.connector if frame is not None else ""
    return Replayed(request, "", lacking, number + 1, calls, connector)


def _request(
    frame: Frame | None, entries: Sequence[Entry], stored: int, preamble: str | None
) -> dict[str, Any]:
    built = build_request(
        system=[frame.system] if frame is not None else [],
        tools=frame.tools if frame is not None else [],
        messages=[entry.message for entry in entries],
        stored=stored,
        preamble=preamble,
    )
    told: dict[str, Any] = dict(frame.parameters) if frame is not None else {}
    if built.system:
        told["system"] = built.system
    if built.tools:
        told["tools"] = built.tools
    return {**told, "messages": built.messages}


async def _preamble(
    memory: AgentMemory, person: Person, kept: dict[str, Notes], name: str, context: Context
) -> str | None:
    """The notes as they were; "" where there were none, None where they cannot be had again."""
    if not name:
        return ""
    notes = kept.get(name)
    if notes is None:
        return None
    values = {
        (name_check(value.name), value.version, value.updated): value
        async for fact in _facts(memory, person, context)
        for value in _values(fact)
    }
    facts = [values[each] for each in notes.facts if each in values]
    preamble = preamble_of(facts, notes.more)
    return preamble.text if preamble.notes == notes else None


def _values(fact: Fact) -> Iterator[Fact]:
    """A fact as it is, and as it was before."""
    yield fact
    for was in fact.earlier:
        yield replace(
            fact,
            value=was.value,
            version=was.version,
            thread=was.thread,
            seq=was.seq,
            updated=was.at,
        )


async def _turns(memory: AgentMemory, place: Place, context: Context) -> AsyncIterator[Turn]:
    after = 0
    while True:
        page = await memory.turns(place, after=after, context=context)
        for turn in page.items:
            yield turn
        if page.after is None:
            return
        after = int(page.after)


async def _facts(memory: AgentMemory, person: Person, context: Context) -> AsyncIterator[Fact]:
    if not person.user:
        return
    after: str | None = None
    while True:
        page = await memory.facts(person, after=after, context=context)
        for fact in page.items:
            yield await memory.fact(person, fact.name, context=context) or fact
        if page.after is None:
            return
        after = page.after


async def _working(memory: AgentMemory, place: Place, context: Context) -> list[Entry]:
    log = await memory.working(place, context=context)
    try:
        return Entry.decode_all(log.entries) if log is not None else []
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"a stored working context cannot be read: {error!r}") from error


def _archived(stored: Sequence[bytes]) -> Archived:
    try:
        return read_archived(stored)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"the archive of a thread cannot be read: {error!r}") from error


def _frame(kept: bytes) -> Frame:
    try:
        return Frame.decode(kept)
    except (ValueError, TypeError) as error:
        raise StoreError(f"a frame cannot be read: {error!r}") from error
