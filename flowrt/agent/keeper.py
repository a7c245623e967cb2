"""What a run hands over to be kept, and who keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from flowrt.memory.entry import Entry
from flowrt.memory.meter import Reading
from flowrt.memory.transcript import Thread, Transcript


@dataclass(frozen=True, slots=True)
class Working:
    """A working context as it stands: every entry, and what the meter knows.

    `compacted` says that entries which were loaded are gone or summarised. `tokens` is the size.
    """

    entries: Sequence[Entry]
    compacted: bool
    reading: Reading | None
    iteration: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended. An `answer` "" is none, and `stop_reason` says why.

    `failed` is a run that raised or was cancelled. `leftover` was handed over and never taken.
    """

    iterations: int
    answer: str = ""
    stop_reason: str = ""
    leftover: tuple[str, ...] = ()
    failed: bool = False


class Keeper(Protocol):
    """Keeps the conversation of one run."""

    name: str
    """The thread's."""

    preamble: str
    """Text for this run alone; set once loaded."""

    blind: str
    """Why nothing could be read; then nothing is written either. Set once loaded."""

    interrupted: int | None
    """Where in what was loaded the exchange of a run begins that died, else None."""

    comes_again: bool
    """Whether that exchange is the one of the message it was loaded for."""

    async def load(self, delivery: str = "") -> Transcript:
        """What is stored, for a message with this mark.

        Raises `StoreError` where the run is not to go on without.
        """
        ...

    def begin(self, opening: Entry) -> None:
        """An exchange begins with this entry."""
        ...

    def said(self, text: str) -> None:
        """The user said something in the exchange."""
        ...

    def asked(self, entries: Sequence[Entry], stored: int, *, files: bool) -> None:
        """A request with these messages goes out; `stored` of them were loaded, and `files` says
        that it has some which are not kept."""
        ...

    async def checkpoint(self, working: Working, *, force: bool = False) -> None:
        """A good moment to store what there is. Fails quietly."""
        ...

    async def source(self) -> int:
        """The number in the record that the exchange's opening has or will have; 0: none."""
        ...

    async def save(self, working: Working, ending: Ending) -> None:
        """Store an exchange that ended. Raises `StoreError`."""
        ...

    async def finish(self, ending: Ending) -> None:
        """What is left to do once an exchange is saved."""
        ...


class ThreadKeeper:
    """Keeps the transcript of a thread without `agentId`: one write, when the run has ended.

    A run that fails or is cancelled leaves the thread as it was.
    """

    def __init__(self, thread: Thread) -> None:
        self.preamble = ""
        self.blind = ""
        self.interrupted: int | None = None
        self.comes_again = False
        self.name = thread.name
        self._thread = thread
        self._seen = Transcript()

    async def load(self, delivery: str = "") -> Transcript:
        self._seen = await self._thread.load()
        return self._seen

    def begin(self, opening: Entry) -> None: ...

    def said(self, text: str) -> None: ...

    def asked(self, entries: Sequence[Entry], stored: int, *, files: bool) -> None: ...

    async def checkpoint(self, working: Working, *, force: bool = False) -> None: ...

    async def source(self) -> int:
        return 0

    async def save(self, working: Working, ending: Ending) -> None:
        if ending.failed:
            return
        new = [entry for entry in working.entries if entry.added]
        kept = [entry for entry in working.entries if not entry.added]
        if working.compacted:
            await self._thread.compact(self._seen, kept, new, working.reading)
        else:
            await self._thread.append(new, working.reading)

    async def finish(self, ending: Ending) -> None: ...
