"""What a `RedisStore` lends to those who keep more than values in its database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class RunScript(Protocol):
    """Runs a script by name; `again` where it may be sent twice if the connection broke."""

    def __call__(
        self, name: str, keys: list[bytes], arguments: list[Any], *, again: bool = True
    ) -> Awaitable[Any]: ...


class Call(Protocol):
    """Awaits a command within the store's time, and turns its errors into those of the tree."""

    def __call__(
        self, command: Callable[[], Awaitable[T]], *, again: bool = False
    ) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class RedisLink:
    """Scripts and commands of an open store.

    `waiting` gives a client with connections of its own, for commands that block: they would hold
    those that others wait for.
    """

    script: RunScript
    call: Call
    client: Callable[[], Any]
    waiting: Callable[[], Any]

    async def listen(
        self, channels: Sequence[bytes], ready: Callable[[], None], heard: Callable[[bytes], None]
    ) -> None:
        """Call `ready` once subscribed, then `heard` with what is published, until cancelled."""
        pubsub = self.waiting().pubsub(ignore_subscribe_messages=False)
        try:
            await self.call(lambda: pubsub.subscribe(*channels))
            while True:
                # Each wait ends long before the store's patience does.
                told = await self.call(lambda: pubsub.get_message(timeout=5.0))
                if told is None:
                    continue
                if told["type"] == "subscribe":
                    ready()
                elif told["type"] == "message":
                    heard(told["data"])
        finally:
            await pubsub.aclose()
