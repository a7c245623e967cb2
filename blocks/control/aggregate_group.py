"""A group of messages on its way to become one: what `aggregate` knows and stores of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from flowrt.errors import FlowError
from flowrt.message import Message

FARTHEST = 100_000
"""Places that an element's `groupIndex` may be ahead of those that came: each gap is a null."""


@dataclass(slots=True)
class Group:
    """The messages of one key so far, without their bodies.

    `fold` is what a fold has made of the bodies. `size` is how many there will be, -1 while
    unknown. Times are milliseconds since 1970: other processes read them.
    """

    key: str
    first_at: int
    last_at: int
    correlation_id: str
    trace_id: str
    count: int = 0
    size: int = -1
    fold: Any = None

    @classmethod
    def begin(cls, key: str, message: Message, now: int) -> Group:
        """An empty group that `message` will be the first of."""
        return cls(key, now, now, message.correlation_id, message.trace_id)

    def join(self, size: int, now: int) -> None:
        """Count one message more, which says that there will be `size`."""
        self.count += 1
        self.last_at = now
        # In the text modes of `split` only the last element knows, and need not arrive last.
        self.size = max(self.size, size)

    def element(self, message: Message) -> bytes:
        """A message's body, and its place where it has one, as they are stored."""
        index = message.vars.get("groupIndex")
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            index = None
        elif index > self.count + FARTHEST:
            raise FlowError(f"groupIndex {index} is too far beyond the {self.count} before it")
        return json.dumps([index, message.body], ensure_ascii=False).encode()

    def variable(self, acc: Any, now: int) -> dict[str, Any]:
        """The group as expressions see it, in `vars.group`."""
        return {
            "key": self.key,
            "count": self.count,
            "size": self.size,
            "acc": acc,
            "firstAt": _text(self.first_at),
            "lastAt": _text(self.last_at),
            "ageMs": now - self.first_at,
            "idleMs": now - self.last_at,
        }

    def released(self, acc: Any, reason: str) -> Message:
        """The one message that the group becomes."""
        variables = {
            "aggregateKey": self.key,
            "aggregateCount": self.count,
            "aggregateReason": reason,
        }
        message = Message(acc, variables, correlation_id=self.correlation_id)
        message.trace_id = self.trace_id
        return message

    def to_json(self) -> dict[str, Any]:
        """The group as it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Group:
        """A group that was stored."""
        return cls(**stored)


def placed(elements: Iterable[bytes]) -> list[Any]:
    """The bodies of stored elements, each at its place or at the end; gaps are null."""
    bodies: list[Any] = []
    for element in elements:
        index, body = json.loads(element)
        if index is None:
            bodies.append(body)
        else:
            bodies.extend([None] * (index + 1 - len(bodies)))
            bodies[index] = body
    return bodies


def _text(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
