"""Threads and turns as they are kept in the process's own memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from sys import getsizeof
from typing import NamedTuple

from flowrt.storage.agents.protocol import NewTurn, Person, Role, ThreadInfo, Turn
from flowrt.storage.encoding import JSON, decode_value

THREAD_BYTES = 1000
TURN_BYTES = 250
"""What Python needs beside texts, about."""

_seq, _id = attrgetter("seq"), attrgetter("id")


class Said(NamedTuple):
    """A turn; thread and user are its thread's. `attrs` is encoded, so that nobody changes it."""

    id: int
    seq: int
    role: Role
    text: str
    tokens: int
    attrs: bytes
    at: float


@dataclass(slots=True)
class Thread:
    """A thread with its turns. `stamp` rises with its activity, `size` is in bytes."""

    service: str
    agent: str
    name: str
    user: str
    created: float
    active: float
    title: str = ""
    stamp: int = 0
    version: int = 0
    size: int = 0
    said: list[Said] = field(default_factory=list)

    @property
    def person(self) -> Person:
        """Whose it is."""
        return Person(self.service, self.agent, self.user)

    def info(self) -> ThreadInfo:
        """What the store's callers get."""
        return ThreadInfo(
            agent=self.agent,
            thread=self.name,
            user=self.user,
            title=self.title,
            turns=len(self.said),
            version=self.version,
            created=self.created,
            active=self.active,
        )

    def turn(self, said: Said) -> Turn:
        """What the store's callers get of a turn."""
        return Turn(
            id=said.id,
            thread=self.name,
            user=self.user,
            seq=said.seq,
            role=said.role,
            text=said.text,
            tokens=said.tokens,
            attrs=decode_value(JSON, said.attrs),
            at=said.at,
        )

    def add(self, turns: Sequence[NewTurn], attrs: Sequence[bytes], first: int) -> list[Turn]:
        """Record turns with ids from `first` on."""
        start, seq = len(self.said), len(self.said) + 1
        for at, (turn, data) in enumerate(zip(turns, attrs, strict=True)):
            words = (turn.role, turn.text, turn.tokens, data)
            self.said.append(Said(first + at, seq + at, *words, self.active))
        return [self.turn(said) for said in self.said[start:]]

    def behind(self, seq: int, count: int) -> list[Said]:
        """The first turns behind a sequence number."""
        start = bisect_right(self.said, seq, key=_seq)
        return self.said[start : start + count]

    def before(self, seq: int, count: int) -> list[Said]:
        """The last turns before a sequence number, newest first; 0 is the end."""
        end = bisect_left(self.said, seq, key=_seq) if seq else len(self.said)
        return self.said[max(0, end - count) : end][::-1]

    def later(self, number: int, count: int) -> Iterator[tuple[int, Thread, Said]]:
        """The first turns with an id above `number`, by id."""
        if not self.said or self.said[-1].id <= number:
            return
        start = bisect_right(self.said, number, key=_id)
        for said in islice(self.said, start, start + count):
            yield said.id, self, said

    def has(self, number: int) -> bool:
        """Whether a turn with that id is one of its."""
        at = bisect_left(self.said, number, key=_id)
        return at < len(self.said) and self.said[at].id == number


def turns_size(turns: Sequence[NewTurn], attrs: Sequence[bytes]) -> int:
    """Bytes that turns will take."""
    texts = sum(getsizeof(turn.text) for turn in turns)
    return texts + sum(getsizeof(data) for data in attrs) + TURN_BYTES * len(turns)
