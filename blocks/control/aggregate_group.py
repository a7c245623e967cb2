"""A group of messages on its way to become one: what `aggregate` stores."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from flowrt.errors import FlowError
from flowrt.message import Message

FARTHEST = 100_000
"""Places that an element's `groupIndex` may be ahead of those already there: each is stored."""


@dataclass(slots=True)
class Group:
    """The messages of one key so far.

    `acc` is the list of their bodies, or what the fold made of them. `size` is how many there will
    be, -1 while unknown. Times are milliseconds since 1970: other processes read them.
    """

    key: str
    first_at: int
    last_at: int
    correlation_id: str
    trace_id: str
    acc: Any = None
    count: int = 0
    size: int = -1

    @classmethod
    def begin(cls, key: str, message: Message, now: int) -> Group:
        """An empty group that `message` will be the first of."""
        return cls(key, now, now, message.correlation_id, message.trace_id)

    def append(self, body: Any, index: Any) -> None:
        """Put a body at its place, or at the end where it has none; gaps are null."""
        acc = [] if self.acc is None else self.acc
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            acc.append(body)
        else:
            if index > len(acc) + FARTHEST:
                raise FlowError(f"groupIndex {index} is too far beyond the {len(acc)} before it")
            acc.extend([None] * (index + 1 - len(acc)))
            acc[index] = body
        self.acc = acc

    def variable(self, now: int) -> dict[str, Any]:
        """The group as expressions see it, in `vars.group`."""
        return {
            "key": self.key,
            "count": self.count,
            "size": self.size,
            "acc": self.acc,
            "firstAt": _text(self.first_at),
            "lastAt": _text(self.last_at),
            "ageMs": now - self.first_at,
            "idleMs": now - self.last_at,
        }

    def released(self, reason: str) -> Message:
        """The one message that the group becomes."""
        variables = {
            "aggregateKey": self.key,
            "aggregateCount": self.count,
            "aggregateReason": reason,
        }
        message = Message(self.acc, variables, correlation_id=self.correlation_id)
        message.trace_id = self.trace_id
        return message

    def to_json(self) -> dict[str, Any]:
        """The group as it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Group:
        """A group that was stored."""
        return cls(**stored)


def _text(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
