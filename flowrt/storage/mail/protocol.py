"""What a store can do that carries messages between processes.

A **box** is an ordered list of messages that several readers share. A message is *taken* by one
reader, who *renews* it while it works and then *settles* it. What is neither renewed nor settled
for `Terms.stale` seconds belongs to a reader that is gone: whoever asks next takes it over. A
message that was taken `Terms.tries` times and never settled is *parked*: it waits for somebody who
looks at it. A message that awaits a reply names the box of who asks and an id. Messages of a box
may belong to an **order**, such as that of a conversation: the box knows which of it comes first.

Every method may raise `StoreUnavailable` or `StoreError`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Terms:
    """What replicas on one store agree on; the defaults are what a service uses."""

    stale: float = 15.0
    """Seconds after which a message that nobody renews is taken over."""
    tries: int = 5
    """How often a message is taken before it is parked."""
    places: int = 10_000
    """Messages of a box; senders wait when they are there."""
    parked: int = 1_000
    """Parked messages of a service; the oldest goes when there are more."""


class ReplyTo(NamedTuple):
    """Where an answer goes: the process that asked, and which of its questions it was."""

    process: str
    question: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that was taken, to be settled under its `id`."""

    id: str
    data: bytes
    reply_to: ReplyTo | None
    order: str = ""


@dataclass(frozen=True, slots=True)
class Parked:
    """A message that waits for somebody who looks at it."""

    id: str
    box: str
    data: bytes
    error: str
    tries: int
    at: float
    """Seconds since the epoch."""


class Taken(NamedTuple):
    """What was taken over, and the messages of these that were tried too often and are parked."""

    deliveries: list[Delivery]
    parked: list[str]
    waiting: int
    """How many wait for a reader."""


class Published(NamedTuple):
    """How a message reached the subscriptions of a topic."""

    subscriptions: int
    full: list[str]
    """Those that have no room; they did not get it."""
    lost: int
    """Messages of subscriptions that were given up because their reader is gone."""


class Mail(Protocol):
    """The boxes of one service."""

    async def add(
        self,
        box: str,
        data: bytes,
        places: int,
        reply_to: ReplyTo | None = None,
        order: str = "",
    ) -> str | None:
        """Put a message at the end and return its id; None where the box has no room."""
        ...

    async def heads(self, box: str, orders: Sequence[str]) -> list[str]:
        """For each order the id of its first message that is not settled, "" where there is none.

        One that was put back, or taken over, has its place among the others still.
        """
        ...

    async def open_box(self, box: str) -> None:
        """Make a box ready to be read."""
        ...

    async def read(self, box: str, reader: str, *, count: int, wait: float) -> list[Delivery]:
        """Take the next messages, waiting `wait` seconds for the first."""
        ...

    async def length(self, box: str) -> int:
        """How many messages of a box are not settled."""
        ...

    async def take_over(self, box: str, reader: str, *, count: int, terms: Terms) -> Taken:
        """Take messages of readers that are gone."""
        ...

    async def renew(self, box: str, reader: str, ids: Sequence[str]) -> list[str]:
        """Go on holding these; returns those that another reader has by now."""
        ...

    async def settle(self, box: str, delivery: Delivery, answer: bytes | None) -> None:
        """A message is done; `answer` goes to whoever asked."""
        ...

    async def park(self, box: str, delivery: Delivery, error: str, terms: Terms) -> bool:
        """Not to be tried again; whether the oldest parked message had to go for it."""
        ...

    async def give_back(self, box: str, reader: str) -> int:
        """A reader stops: what it has not settled is put back; returns how many."""
        ...

    async def withdraw(self, box: str, id_: str) -> bool:
        """Remove a message that nobody has taken; False where somebody has."""
        ...

    async def replies(
        self, process: str, after: str, *, wait: float
    ) -> list[tuple[str, str, bytes]]:
        """Answers to a process: where each is, the question, and the data. Removes those before."""
        ...

    async def subscribe(self, topic: str, subscription: str, lifetime: float) -> None:
        """Have a box of a subscription get what is published, for `lifetime` seconds."""
        ...

    async def unsubscribe(self, topic: str, subscription: str) -> int:
        """Give up a subscription and its box; returns how many messages were in it."""
        ...

    async def publish(
        self, topic: str, data: bytes, places: int, only: Sequence[str] = ()
    ) -> Published:
        """Put a message in the box of every subscription, or of `only` these."""
        ...

    async def parked(self) -> list[Parked]:
        """What is parked, the oldest first."""
        ...

    async def retry(self, id_: str) -> bool:
        """Put a parked message back in its box; False where there is none of this id."""
        ...

    async def drop(self, id_: str) -> bool:
        """Forget a parked message; False where there is none of this id."""
        ...

    async def announce(self, channel: str, data: bytes) -> int:
        """Tell whoever listens to a channel right now; returns how many those are."""
        ...

    async def listen(
        self, channels: Sequence[str], ready: Callable[[], None], heard: Callable[[bytes], None]
    ) -> None:
        """Call `ready` once it listens and `heard` with what is announced.

        Until cancelled; raises `StoreUnavailable` where the connection breaks.
        """
        ...


def box_of(topic: str, subscription: str) -> str:
    """The box of a subscription."""
    return f"topic {topic}\x00{subscription}"


def queue_box(subject: str) -> str:
    """The box of a queue."""
    return f"queue {subject}"


def shown(box: str) -> str:
    """A box as people read it."""
    kind, _, rest = box.partition(" ")
    subject, _, subscription = rest.partition("\x00")
    return f"{kind} {subject!r}" + (f" for {subscription!r}" if subscription else "")


@runtime_checkable
class KeepsMail(Protocol):
    """A key-value store that carries messages too."""

    def mail(self, service: str, opened: Callable[[], Awaitable[Any]]) -> Mail:
        """The boxes of a service; `opened` is awaited before each use."""
        ...
