"""What the parts of the suite share: the store under test, the hooks, and the event loop."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from flowrt.errors import VersionConflict
from flowrt.ids import new_id
from flowrt.storage.protocol import KeyValue, Lease

S = TypeVar("S", bound="Suite")
K = TypeVar("K", bound=KeyValue)


class Suite:
    """The hooks. `store` and those that raise `NotImplementedError` must be overridden."""

    largest = 5 * 1024 * 1024
    """Bytes of the largest value that is tried."""

    @pytest.fixture
    def store(self) -> KeyValue:
        """The store under test, not yet open. It need not be empty."""
        raise NotImplementedError("override the fixture `store` to return the store under test")

    @pytest.fixture
    def space(self) -> str:
        """A space of its own for each test, so that a server may be shared."""
        return f"conformance-{new_id()}/user"

    def another(self, store: KeyValue) -> KeyValue:
        """A store on the same data, as another process would make it, not yet open.

        A store that lives within one object returns `store` itself.
        """
        raise NotImplementedError("override `another`")

    async def advance(self, store: KeyValue, seconds: float) -> None:
        """Let `seconds` pass for lifetimes: move an injected clock, or shorten what is left."""
        raise NotImplementedError("override `advance`")

    async def take_away(self, store: KeyValue, lease: Lease) -> None:
        """Make `lease` lost, as time or an operator would, without its holder's doing."""
        raise NotImplementedError("override `take_away`")


@asynccontextmanager
async def opened(store: K) -> AsyncIterator[K]:
    """Open a store and close it on the way out."""
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def failures(*calls: Awaitable[Any]) -> list[BaseException | None]:
    """What each call raised, one after the other; None where it did not."""
    raised: list[BaseException | None] = []
    for call in calls:
        try:
            await call
        except Exception as error:  # noqa: BLE001 - the test looks at each
            raised.append(error)
        else:
            raised.append(None)
    return raised


def conflicts(errors: list[BaseException | None]) -> list[tuple[str, int, int]]:
    """Key, expected and actual version of each error, all of which have to be conflicts."""
    found = []
    for error in errors:
        assert isinstance(error, VersionConflict), f"expected a conflict, found {error!r}"
        found.append((error.key, error.expected, error.actual))
    return found


def in_a_loop(
    test: Callable[[S, KeyValue, str], Coroutine[Any, Any, None]],
) -> Callable[[S, KeyValue, str], None]:
    """Make a test that pytest calls out of one to await: own event loop, open store."""

    @functools.wraps(test)
    def run(self: S, store: KeyValue, space: str) -> None:
        async def main() -> None:
            async with opened(store):
                await test(self, store, space)

        asyncio.run(main())

    return run
