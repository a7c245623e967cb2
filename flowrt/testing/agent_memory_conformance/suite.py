"""What the parts of the suite share: the store under test, the hook, short ways to say things."""

from __future__ import annotations

import asyncio
import functools
import struct
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Literal, Protocol, TypeVar

import pytest

from flowrt.ids import new_id
from flowrt.storage.agents.protocol import (
    AgentStore,
    KeepsAgents,
    NewTurn,
    Page,
    Person,
    Place,
    Turn,
    Vector,
)
from flowrt.storage.protocol import KeyValue
from flowrt.testing.store_conformance.suite import opened

S = TypeVar("S", bound="Suite")
T = TypeVar("T")


class Keeping(KeyValue, KeepsAgents, Protocol):
    """A key-value store that keeps the record of agents."""


class Suite:
    """The hooks. Those that raise `NotImplementedError` must be overridden."""

    @pytest.fixture
    def store(self) -> Keeping:
        """The store under test, not yet open. It need not be empty."""
        raise NotImplementedError("override the fixture `store` to return the store under test")

    @pytest.fixture
    def service(self) -> str:
        """A service of its own for each test, so that a server may be shared."""
        return f"conformance-{new_id()}"

    def another(self, store: Keeping) -> Keeping:
        """A store on the same data, as another process would make it, not yet open.

        A store that lives within one object returns `store` itself.
        """
        raise NotImplementedError("override `another`")


def in_a_loop(
    test: Callable[[S, Keeping, str], Coroutine[Any, Any, None]],
) -> Callable[[S, Keeping, str], None]:
    """Make a test that pytest calls out of one to await: own event loop, open store."""

    @functools.wraps(test)
    def run(self: S, store: Keeping, service: str) -> None:
        async def main() -> None:
            async with opened(store):
                await test(self, store, service)

        asyncio.run(main())

    return run


def said(*texts: str) -> list[NewTurn]:
    """Turns of a user."""
    return [NewTurn("user", text) for text in texts]


def texts(turns: list[Turn]) -> list[str]:
    """What was said."""
    return [turn.text for turn in turns]


def vector(kind: Literal["turn", "fact"], number: int, *values: float) -> Vector:
    """A vector of a model `m`."""
    return Vector(kind, number, "m", struct.pack(f"<{len(values)}f", *values))


def person_of(place: Place) -> Person:
    """The user of a place."""
    return Person(place.service, place.agent, place.user)


async def walk(read: Callable[[str | None], Awaitable[Page[T]]]) -> list[T]:
    """Everything of a listing, page by page."""
    items: list[T] = []
    after: str | None = None
    while True:
        page = await read(after)
        items += page.items
        if page.after is None:
            return items
        assert page.items, "an empty page says that there are more"
        assert page.after != after, "the cursor stands still"
        after = page.after


async def everything(agents: AgentStore, person: Person) -> tuple[Any, ...]:
    """All that a store says of a person, for comparing."""
    service, agent, user = person
    threads = await walk(lambda at: agents.threads(service, agent, user=user, after=at))
    facts = await walk(lambda at: agents.facts(person, after=at))
    return (
        threads,
        await walk(lambda at: agents.turns_of(person, after=int(at or 0))),
        facts,
        [await agents.fact(person, fact.name) for fact in facts],
        await walk(lambda at: agents.vectors_of(person, after=at)),
    )


NOTHING: tuple[Any, ...] = ([], [], [], [], [])
"""`everything` of somebody nobody knows."""
