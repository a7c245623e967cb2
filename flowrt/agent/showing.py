"""What one run shows its model, noted so that `flowrt memory show --at` can give it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowrt.agent.conversation import Conversation
from flowrt.memory.entry import Entry
from flowrt.memory.shown import Call, Notes, Shown, ranges_of

BEFORE = -1
"""The call that a question first stood in, where that was one of a run that died."""


class Showing:
    """Numbers the messages of one run and notes which of them stood in each request.

    Nothing is numbered or noted where `recording` is false, as with `history: off`; numbers that
    were given before go on from there once it is true again.
    """

    def __init__(
        self, conversation: Conversation, frame: bytes, frame_name: str, *, recording: bool
    ) -> None:
        self._conversation = conversation
        self._frame = frame
        self._frame_name = frame_name
        self._recording = recording
        self._next = 1
        self._own = 1
        self._kept: dict[str, str] = {}
        self._calls: list[Call] = []
        self._first: list[int] = []
        self._archived: set[int] = set()
        self.notes: Notes | None = None
        """The notes about the user that stand in the requests of the run."""
        self.made: list[Entry] = []
        """The messages that were numbered by this run."""

    def load(self, head: Any) -> None:
        """Go on from what the head of a working context says."""
        told = head.get("shown") if isinstance(head, dict) else None
        if isinstance(told, dict):
            self._next = self._own = told["next"]
            self._kept = {key: told[key] for key in ("frame", "notes") if key in told}

    def catch_up(self, head: Any) -> None:
        """Somebody else wrote the context: numbers that they gave are not given again."""
        told = head.get("shown") if isinstance(head, dict) else None
        if isinstance(told, dict):
            self._next = max(self._next, told["next"])

    def lacks_numbers(self, stored: Sequence[Entry]) -> bool:
        """Whether messages of a stored context are to get their numbers."""
        return self._recording and any(entry.number is None for entry in stored)

    def begin(self) -> None:
        """An exchange begins."""
        self._own = self._next
        self._calls, self._first = [], []

    def said(self, *, before: bool = False) -> None:
        """The user said something; `before` in a run that died."""
        self._first.append(BEFORE if before else len(self._calls))

    def asked(self, entries: Sequence[Entry], stored: int, *, files: bool) -> None:
        """A request with these messages is sent."""
        if self._recording:
            self.number(entries)
            numbers = (entry.number for entry in entries if entry.number is not None)
            self._calls.append(Call(ranges_of(numbers), stored, files))

    def number(self, entries: Sequence[Entry]) -> None:
        """Give each message a number that has none."""
        if not self._recording:
            return
        for entry in entries:
            if entry.number is None:
                entry.number = self._next
                self._next += 1
                self.made.append(entry)

    async def keep(self) -> None:
        """Keep the frame and the notes of the requests where they are new. Raises `StoreError`."""
        if not self._calls:
            return
        memory, place = self._conversation.memory, self._conversation.place
        context = self._conversation.context
        if self._kept.get("frame") != self._frame_name:
            await memory.keep_frame(place, self._frame_name, self._frame, context=context)
            self._kept["frame"] = self._frame_name
        if self.notes is not None and self._kept.get("notes") != self.notes.name:
            await memory.archive(place, [self.notes.encode()], context=context)
            self._kept["notes"] = self.notes.name

    async def archive(self, known: Sequence[Entry], staying: Sequence[Entry]) -> None:
        """Archive what was shown, or stood in the context as it is stored, and is not to stay.

        Before it is removed there: a run that dies in between loses nothing. Raises `StoreError`.
        """
        if not self._recording:
            return
        alive = {id(entry) for entry in staying}
        gone = {
            entry.number: entry.encode()
            for entry in (*known, *self.made)
            if entry.number is not None
            and id(entry) not in alive
            and entry.number not in self._archived
        }
        if gone:
            place, context = self._conversation.place, self._conversation.context
            await self._conversation.memory.archive(place, list(gone.values()), context=context)
            self._archived |= gone.keys()

    def to_attrs(self, turns: int) -> dict[str, Any]:
        """What the record says of the exchange, which has so many turns."""
        if not self._calls:
            return {}
        shown = Shown(
            turns,
            self._frame_name,
            self.notes.name if self.notes is not None else "",
            (self._own, self._next),
            self._first,
            self._calls,
        )
        return {"shown": shown.to_json()}

    def to_head(self) -> dict[str, Any]:
        """What the head of the working context says."""
        return {"shown": {"next": self._next, **self._kept}} if self._next > 1 else {}
