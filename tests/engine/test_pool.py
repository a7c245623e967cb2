"""Pieces of work, a bounded number at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import pytest

from flowrt.engine.pool import run_pooled


async def nothing() -> None:
    await asyncio.sleep(0)


async def fail(text: str) -> None:
    await asyncio.sleep(0)
    raise ValueError(text)


async def test_pieces_are_read_only_as_places_come_free() -> None:
    read: list[int] = []
    done: list[int] = []

    async def piece(number: int) -> None:
        assert len(read) - len(done) <= 3
        await asyncio.sleep(0)
        done.append(number)

    def pieces() -> Iterator[Callable[[], Awaitable[None]]]:
        for number in range(100):
            read.append(number)
            yield partial(piece, number)

    await run_pooled(pieces(), 3)
    assert list(range(100)) == sorted(done)


async def test_no_pieces_are_done_at_once() -> None:
    await run_pooled([], 4)


async def test_of_several_errors_the_first_is_raised_as_it_is() -> None:
    with pytest.raises(ValueError, match="first"):
        await run_pooled([nothing, partial(fail, "first"), partial(fail, "second")], 8)


async def test_an_error_keeps_its_cause() -> None:
    async def chained() -> None:
        raise ValueError("outer") from KeyError("inner")

    with pytest.raises(ValueError, match="outer") as caught:
        await run_pooled([chained], 1)
    assert isinstance(caught.value.__cause__, KeyError)


async def test_pieces_that_cannot_be_read_are_an_error() -> None:
    def pieces() -> Iterator[Callable[[], Awaitable[None]]]:
        yield partial(nothing)
        raise LookupError("no more")

    with pytest.raises(LookupError):
        await run_pooled(pieces(), 2)
