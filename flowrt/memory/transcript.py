"""The working context of a thread, as it is stored: a log that turns append to.

An ordinary turn appends its own messages; nothing that is stored is read or written again. A
compaction starts a new generation of the log. Appends of whole exchanges commute, so they need no
version; a compaction carries the version it was computed from and is repeated on top of whatever
came in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flowrt.errors import VersionConflict
from flowrt.memory.entry import Entry
from flowrt.memory.meter import Reading
from flowrt.storage.tiers import Space

PREFIX = "agent-memory/"
_ATTEMPTS = 5


@dataclass(slots=True)
class Transcript:
    """A thread as loaded: its entries, what the meter knew, and the version of both."""

    entries: list[Entry] = field(default_factory=list)
    reading: Reading | None = None
    version: int = 0
    generation: int = 0


class Thread:
    """One thread's transcript in one tier."""

    __slots__ = ("key", "name", "space")

    def __init__(self, space: Space, name: str) -> None:
        self.space = space
        self.name = name
        self.key = PREFIX + name

    async def load(self) -> Transcript:
        """The current generation; empty where the thread is new."""
        log = await self.space.read_log(self.key)
        if log is None:
            return Transcript()
        entries = Entry.decode_all(log.entries)
        return Transcript(entries, Reading.from_json(log.head), log.version, log.generation)

    async def append(self, entries: Sequence[Entry], reading: Reading | None) -> None:
        """Add a whole exchange behind whatever is stored."""
        head = reading.to_json() if reading else {}
        await self.space.append(self.key, [entry.encode() for entry in entries], head=head)

    async def compact(
        self,
        seen: Transcript,
        kept: Sequence[Entry],
        new: Sequence[Entry],
        reading: Reading | None,
    ) -> None:
        """Replace what was `seen` by `kept`, then add the exchange `new`.

        Exchanges that others appended meanwhile stay, between the two. Where somebody else has
        compacted meanwhile, theirs stands and `new` is added to it.
        """
        head = reading.to_json() if reading else {}
        base, between = seen, list[Entry]()
        for _ in range(_ATTEMPTS):
            entries = [entry.encode() for entry in (*kept, *between, *new)]
            try:
                await self.space.rewrite(self.key, entries, head=head, expect=base.version)
                return
            except VersionConflict:
                base = await self.load()
            if base.generation != seen.generation:
                break
            between = base.entries[len(seen.entries) :]
        await self.append(new, reading)

    async def clear(self) -> bool:
        """Forget the thread; whether there was one."""
        return await self.space.delete(self.key)
