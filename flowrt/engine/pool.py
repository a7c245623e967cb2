"""Work of one message done side by side, a bounded number of pieces at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable


async def run_pooled(pieces: Iterable[Callable[[], Awaitable[None]]], size: int) -> None:
    """Call every piece, at most `size` at a time, and return when all are done.

    `pieces` is read as places come free, so it may be long. The first error cancels the pieces
    under way, which are awaited before it is raised; none is started after it. Cancelling the
    caller does the same.
    """
    queue = iter(pieces)

    async def work() -> None:
        for piece in queue:
            await piece()

    first: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(size):
                group.create_task(work())
    except BaseExceptionGroup as failed:
        # What fails later was made to fail, or lost the race: the caller acts on one cause.
        first = failed.exceptions[0]
    if first is not None:
        raise first
