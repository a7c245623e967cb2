"""The handle of a placeholder, as `slack-reply` leaves it in a variable."""

from __future__ import annotations

from typing import NamedTuple

from flowrt.errors import FlowError
from flowrt.message import Message


class Handle(NamedTuple):
    """A message that the app has posted, and the thread it is in."""

    channel: str
    ts: str
    thread_ts: str | None


def handle_in(message: Message, variable: str) -> Handle:
    """The handle in a variable. Raises `FlowError` where there is none."""
    value = message.vars.get(variable)
    if isinstance(value, dict):
        channel, ts, thread = (value.get(name) for name in ("channel", "ts", "threadTs"))
        if isinstance(channel, str) and isinstance(ts, str):
            return Handle(channel, ts, thread if isinstance(thread, str) else None)
    raise FlowError(
        f"vars.{variable} is no handle of a reply, found {str(value)[:80]!r}; put slack-reply first"
    )
