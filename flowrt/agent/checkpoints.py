"""The working context of an agent with an `agentId`, kept while the run goes on.

Stored is a log. What a run adds is appended; only a compaction, or somebody else's write in
between, has it written anew. Every write says which version it is based on: where that has moved,
the log is read again and the run's own exchange goes behind whatever is there.

While an exchange is under way the head of the log says where it begins (`open`), so that the next
run can tell a run that died from one that ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flowrt.agent.conversation import Conversation
from flowrt.agent.keeper import Working
from flowrt.agent.showing import Showing
from flowrt.clock import Clock
from flowrt.errors import StoreError, VersionConflict
from flowrt.memory.entry import Entry
from flowrt.memory.meter import Reading
from flowrt.memory.transcript import Thread, Transcript
from flowrt.observe.log import get_logger

LEAST_SECONDS = 2.0
"""Between two checkpoints, unless there is much to store."""

LEAST_BYTES = 64 * 1024
"""What makes a checkpoint worth it however little time has passed."""

_ATTEMPTS = 5
_COMPACTIONS = 50
"""The newest compactions that a context tells of."""

_log = get_logger("flowrt.agent.memory")


@dataclass(frozen=True, slots=True)
class OpenExchange:
    """An exchange that has not ended: its first entry in the log, and the number its opening has,
    or will have, in the record; 0 where nothing is recorded."""

    start: int
    seq: int

    def to_json(self) -> dict[str, int]:
        return {"from": self.start, "seq": self.seq}


class Checkpoints:
    """One run's view of a working context."""

    def __init__(
        self, conversation: Conversation, legacy: Thread, clock: Clock, showing: Showing
    ) -> None:
        self._conversation = conversation
        self._showing = showing
        self._legacy = legacy
        self._from_legacy = False
        self._clock = clock
        # What the log holds, as far as this run knows.
        self._log: list[Entry] = []
        self._version = 0
        self._generation = 0
        # What others wrote meanwhile: behind what was loaded, or in its place where they compacted.
        self._between: list[Entry] = []
        self._instead: list[Entry] | None = None
        self._compactions: list[dict[str, Any]] = []
        # Of a thread from before messages had numbers: it is written anew once, with them.
        self._unnumbered = False
        self._last = clock.monotonic()
        self._weighed = 0
        self._pending = 0
        self._writing = asyncio.Lock()
        self.open: OpenExchange | None = None
        """The exchange that the log says is under way."""

    async def load(self) -> Transcript:
        """What is stored under the agent, else under the thread alone, as before `agentId`.

        Raises `StoreError`, also for what cannot be decoded.
        """
        place, context = self._conversation.place, self._conversation.context
        log = await self._conversation.memory.working(place, context=context)
        if log is None:
            seen = await self._legacy.load()
            self._from_legacy = seen.version > 0
            return Transcript(seen.entries, seen.reading)
        self._log = _decoded(log.entries)
        self._version, self._generation = log.version, log.generation
        self.open = _open_exchange(log.head, len(self._log))
        self._compactions = compactions_of(log.head)
        self._showing.load(log.head)
        self._unnumbered = self._showing.lacks_numbers(self._log)
        self._weighed = len(self._log)
        return Transcript(list(self._log), Reading.from_json(log.head), log.version, log.generation)

    @property
    def written(self) -> bool:
        """Whether the log says that an exchange of this run is under way."""
        return self.open is not None

    def due(self, entries: Sequence[Entry]) -> bool:
        """Whether enough has happened since the last checkpoint."""
        self._pending += sum(len(entry.encode()) for entry in entries[self._weighed :])
        self._weighed = len(entries)
        waited = self._clock.monotonic() - self._last
        return waited >= LEAST_SECONDS or self._pending >= LEAST_BYTES

    async def write(self, working: Working, opening: Entry | None, seq: int = 0) -> None:
        """Store the context as it stands. `opening` begins the exchange that is under way, and is
        None where it has ended; `seq` is its number in the record. Raises `StoreError`."""
        async with self._writing:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    await self._write(self._wanted(working), working, opening, seq)
                    break
                except VersionConflict:
                    if attempt == _ATTEMPTS:
                        raise
                    await self._catch_up(working)
            self._last = self._clock.monotonic()
            self._pending = 0
            if self._from_legacy:
                await self._legacy.clear()
                self._from_legacy = False

    async def close_exchange(self) -> None:
        """Say that no exchange is under way, and leave the entries as they are.

        What the model was shown in it goes to the archive. Raises `StoreError`.
        """
        if self._from_legacy:
            return  # a context under the agent would hide the one that is under the thread alone
        log = await self._conversation.memory.working(
            self._conversation.place, context=self._conversation.context
        )
        head = log.head if log is not None and isinstance(log.head, dict) else {}
        head = {key: value for key, value in head.items() if key != "open"}
        await self._showing.archive([], self._log)
        await self._append([], head | self._showing.to_head(), log.version if log else 0)
        self.open = None

    def _wanted(self, working: Working) -> list[Entry]:
        mine = [entry for entry in working.entries if entry.added]
        if self._instead is not None:
            return [*self._instead, *mine]
        kept = [entry for entry in working.entries if not entry.added]
        return [*kept, *self._between, *mine]

    async def _write(
        self, wanted: list[Entry], working: Working, opening: Entry | None, seq: int
    ) -> None:
        under_way = None
        if opening is not None:
            start = next((at for at, entry in enumerate(wanted) if entry is opening), 0)
            under_way = OpenExchange(start, seq)
        self._showing.number(wanted)
        known = len(self._log)
        if _same(wanted, self._log) and self.open == under_way and self._version:
            return  # calls of one turn ask for checkpoints side by side
        appends = _same(wanted[:known], self._log) and not self._unnumbered
        compactions = self._compactions
        if working.compacted and not appends and self._instead is None:
            compactions = [*compactions, self._compaction(known)][-_COMPACTIONS:]
        if not appends or working.compacted:
            await self._showing.archive(self._log, wanted)
        head = _head(working, under_way, compactions) | self._showing.to_head()
        if appends:
            new = [entry.encode() for entry in wanted[known:]]
            self._version = await self._append(new, head, self._version)
            self._generation = self._generation or 1
        else:
            self._version = await self._conversation.memory.rewrite_working(
                self._conversation.place,
                [entry.encode() for entry in wanted],
                head=head,
                expect=self._version,
                context=self._conversation.context,
            )
            self._generation += 1
        self._log, self._unnumbered = wanted, False
        self._compactions = compactions
        self.open = under_way

    def _compaction(self, entries: int) -> dict[str, Any]:
        """For who looks at the thread later: how much there was, and until when."""
        return {"at": self._clock.now().timestamp(), "entries": entries}

    async def _append(self, entries: list[bytes], head: Any, expect: int) -> int:
        return await self._conversation.memory.append_working(
            self._conversation.place,
            entries,
            head=head,
            expect=expect,
            context=self._conversation.context,
        )

    async def _catch_up(self, working: Working) -> None:
        """Take in what somebody else wrote, or what a write of ours did whose answer was lost."""
        log = await self._conversation.memory.working(
            self._conversation.place, context=self._conversation.context
        )
        _log.info(
            "somebody else wrote a working context; writing on top of theirs",
            agent=self._conversation.place.agent,
            thread=self._conversation.place.thread,
        )
        before, self._log = self._log, []
        same = log is not None and log.generation == self._generation
        if log is None:
            # It was cleared: what was loaded must not come back, what this run adds is new.
            self._version, self._generation = 0, 0
            self._instead = []
            return
        mine = {entry.encode(): entry for entry in working.entries if entry.added}
        for at, raw in enumerate(log.entries):
            ours = mine.get(raw)
            known = before[at] if same and at < len(before) else None
            self._log.append(ours or known or _decoded([raw])[0])
        self._version, self._generation = log.version, log.generation
        self._showing.catch_up(log.head)
        theirs = [entry for entry in self._log if not entry.added]
        if same and self._instead is None:
            self._between += theirs[sum(not entry.added for entry in before) :]
        else:
            self._instead = theirs


def _same(left: Sequence[Entry], right: Sequence[Entry]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def _decoded(entries: Sequence[bytes]) -> list[Entry]:
    try:
        return Entry.decode_all(entries)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"a stored working context cannot be read: {error!r}") from error


def compactions_of(head: Any) -> list[dict[str, Any]]:
    """When a context was compacted, oldest first: {at, entries}, seconds since 1970 and how many
    entries it had. Empty for one that was not, or by a flowrt that did not note it."""
    told = head.get("compactions") if isinstance(head, dict) else None
    return [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []


def _head(
    working: Working, under_way: OpenExchange | None, compactions: list[dict[str, Any]]
) -> dict[str, Any]:
    head: dict[str, Any] = {"iteration": working.iteration, "tokens": working.tokens}
    if compactions:
        head["compactions"] = compactions
    if working.reading is not None:
        head |= working.reading.to_json()
    if under_way is not None:
        head["open"] = under_way.to_json()
    return head


def _open_exchange(head: Any, length: int) -> OpenExchange | None:
    told = head.get("open") if isinstance(head, dict) else None
    if not isinstance(told, dict) or not 0 <= told.get("from", -1) < length:
        return None
    return OpenExchange(told["from"], told.get("seq", 0))
