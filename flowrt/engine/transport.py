"""How messages go from flow to flow by subject: topics and queues, whatever carries them."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from flowrt.engine.delivery import Delivery
from flowrt.errors import FlowError
from flowrt.message import Message

Payload = dict[str, Any]
"""A message, or the answer to one, as JSON: it may leave the process."""

Receive = Callable[[Payload], Awaitable[None]]
"""Handles a message of a topic. It has nobody to raise to: what goes wrong, it logs."""

Answer = Callable[[Payload, Delivery], Awaitable[Payload]]
"""Handles a message of a queue and makes the answer; a failure is an answer too."""


class NobodyListens(FlowError):
    """A message was sent where nobody takes it, and nobody ever will."""


class Subscription(Protocol):
    """A place where messages arrive."""

    async def stop(self) -> None:
        """Take nothing more; what is worked on is cut off, and its sender told."""
        ...


class Transport(Protocol):
    """Carries messages to subjects. A subject is a topic or a queue by how it is used.

    A subject belongs to one service, except those that start with `SYSTEM`: they leave it, for
    whoever watches the deployment. Nothing is lost without a log line.
    """

    async def publish(self, subject: str, payload: Payload) -> None:
        """Send to every subscriber. Waits where one of them has no room.

        Raises `NobodyListens` where that is known.
        """
        ...

    async def dispatch(
        self, subject: str, payload: Payload, *, order: str = "", delivery: str = ""
    ) -> None:
        """Send to one consumer and go on. Waits where there is no room.

        A message of an `order` can wait for the earlier ones of that order before it works on what
        they share. `delivery` is the id under which it comes, also when it comes again; unset, the
        transport gives one where it may come again.

        Raises `NobodyListens` where that is known.
        """
        ...

    async def offer(
        self, subject: str, payload: Payload, *, order: str = "", delivery: str = ""
    ) -> bool:
        """Send as `dispatch` does, unless there is no room: whether it was sent."""
        ...

    async def request(self, subject: str, payload: Payload) -> Payload:
        """Send to one consumer and wait for its answer, for as long as it takes.

        Cancelling it withdraws a message that nobody has begun with. Raises `NobodyListens` where
        that is known, or turns out while it waits.
        """
        ...

    async def subscribe(
        self, subject: str, receive: Receive, *, listeners: int, buffer: int, shared: str = ""
    ) -> Subscription:
        """Receive a copy of every message of a topic: `listeners` at a time, `buffer` waiting.

        Those of all processes that subscribe under one `shared` name get one copy between them.
        """
        ...

    async def consume(
        self, subject: str, answer: Answer, *, listeners: int, buffer: int
    ) -> Subscription:
        """Compete for the messages of a queue: `listeners` at a time, `buffer` waiting."""
        ...

    def waiting(self) -> dict[str, int]:
        """How many messages wait for a listener of this process, by queue and topic."""
        ...

    def retire(self) -> None:
        """The service stops: take no more of what others can do, or can be done later.

        What the flows under way here wait for is still taken. A new subscription ends it.
        """
        ...

    async def close(self) -> None:
        """The service has stopped: whoever waits for an answer is told that none will come."""
        ...

    async def idle(self) -> None:
        """Wait until nothing that this process has taken, or alone could take, is left to do."""
        ...


SYSTEM = "system:"
"""Subjects that start so leave the service; flows may publish to them and not listen."""


def packed(message: Message) -> Payload:
    """The message as it is sent: without its event id, which the receiver's own copy replaces.

    A stop is not sent: it ends the flow that asked for it.
    """
    payload: Payload = {
        "body": copy.deepcopy(message.body),
        "variables": copy.deepcopy(dict(message.vars)),
    }
    if message.raw:
        payload["raw"] = True
    if message.correlation_id:
        payload["correlationId"] = message.correlation_id
    if message.trace_id:
        payload["traceId"] = message.trace_id
    if message.body_schema is not None:
        payload["bodySchema"] = message.body_schema
    return payload


def unpacked(payload: Payload) -> Message:
    """A message of its own from what was sent; the payload may be unpacked again."""
    message = Message(
        copy.deepcopy(payload["body"]),
        copy.deepcopy(payload["variables"]),
        correlation_id=payload.get("correlationId", ""),
    )
    message.raw = payload.get("raw", False)
    message.trace_id = payload.get("traceId", "")
    message.body_schema = payload.get("bodySchema")
    return message
