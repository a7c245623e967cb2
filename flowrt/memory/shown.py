"""What a model was shown, kept so that each of its requests can be put together again.

A request is not stored. Each message of a conversation has a number, and each request notes which
numbers stood in it; the messages are in the working context, or in the archive of the thread where
they are no longer in there. What rarely changes is a *frame*, kept once for all threads of an
agent under a name that is made of its content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flowrt.memory.entry import Entry

Ranges = list[list[int]]
"""Numbers in order: [first, last], both included."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What all requests of a block have in common.

    `parameters` go out beside system prompt, tools and messages, such as the model's name.
    """

    system: str
    tools: list[dict[str, Any]]
    parameters: dict[str, Any]
    connector: str
    provider: str

    def encode(self) -> bytes:
        """As it is kept."""
        told = {key: getattr(self, key) for key in self.__slots__}
        return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, kept: bytes) -> Frame:
        """Raises `ValueError` or `TypeError` for what is no frame."""
        return cls(**json.loads(kept))


def name_of(content: bytes) -> str:
    """The name of what is kept once: the same content, the same name."""
    return hashlib.sha256(content).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Call:
    """The messages of one request: their numbers, and how many of them were in the store already.

    `files` says that the message which opened the run came with files that are not kept.
    """

    messages: Ranges
    stored: int
    files: bool = False

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"messages": self.messages, "stored": self.stored}
        return {**told, "files": True} if self.files else told


@dataclass(frozen=True, slots=True)
class Shown:
    """The requests of one exchange, as the record has them beside the turn that opened it.

    `turns` is how many turns the exchange has, `own` the numbers that it gave: from, and up to but
    not including. `first` tells of each turn of the user the first of `calls` that held it; one
    past the last is none, and -1 one of a run that died. `notes` names the notes about the user.
    """

    turns: int
    frame: str
    notes: str
    own: tuple[int, int]
    first: list[int]
    calls: list[Call]

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "turns": self.turns,
            "frame": self.frame,
            "own": list(self.own),
            "first": self.first,
            "calls": [call.to_json() for call in self.calls],
        }
        return {**told, "notes": self.notes} if self.notes else told

    @classmethod
    def from_json(cls, told: Any) -> Shown:
        """Raises `ValueError`, `KeyError` or `TypeError` for what is something else."""
        first, end = told["own"]
        calls = [Call(**call) for call in told["calls"]]
        return cls(
            told["turns"], told["frame"], told.get("notes", ""), (first, end), told["first"], calls
        )


@dataclass(frozen=True, slots=True)
class Notes:
    """Which facts stood in the notes about a user, in their order, and how many more there were.

    A fact is told by a checksum of its name, its version and its time, and the text by a checksum:
    where a fact is forgotten, nothing of it is left here.
    """

    facts: list[tuple[int, int, float]]
    more: int
    check: int

    @property
    def name(self) -> str:
        """The same notes, the same name."""
        # Not of the text: the name is in the record, where a memory that encrypts does not see it.
        return name_of(json.dumps([self.facts, self.more]).encode())

    def encode(self) -> bytes:
        """As the archive has them."""
        told = {"facts": self.facts, "more": self.more, "check": self.check}
        return json.dumps({"notes": self.name, **told}, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Archived:
    """What the archive of a thread has: messages that left the working context, and notes."""

    entries: list[Entry]
    notes: dict[str, Notes]


def read_archived(stored: Sequence[bytes]) -> Archived:
    """Raises `ValueError`, `KeyError`, `TypeError` or `AttributeError` for something else."""
    entries: list[bytes] = []
    notes: dict[str, Notes] = {}
    for each in stored:
        told = json.loads(each)
        if "notes" in told:
            facts = [(name, version, at) for name, version, at in told["facts"]]
            notes[told["notes"]] = Notes(facts, told["more"], told["check"])
        else:
            entries.append(each)
    return Archived(Entry.decode_all(entries), notes)


def ranges_of(numbers: Iterable[int]) -> Ranges:
    """Numbers as ranges, in their order."""
    ranges: Ranges = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def numbers_of(ranges: Ranges) -> Iterator[int]:
    """The numbers of ranges, in their order."""
    for first, last in ranges:
        yield from range(first, last + 1)
