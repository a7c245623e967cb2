"""The threads that own SQLite connections; the writing one commits what waits in one go."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from flowrt.errors import FlowrtError

T = TypeVar("T")

_BATCH = 256
_CHECKPOINT_COMMITS = 500


class _Job(NamedTuple):
    work: Callable[[sqlite3.Connection], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class Worker:
    """Runs work on a connection in a thread of its own, in the order it was asked for.

    Work that waits together shares one transaction, so that 200 runs that end at once do not pay
    for 200 commits. Work may raise a `FlowrtError` as long as it has changed nothing; where
    anything else goes wrong, the transaction is rolled back and each work tried in one of its own,
    so that it fails alone. Not the loop's default executor: a service that keeps that busy must
    not keep its own stores waiting.
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        *,
        writes: bool,
        check: Callable[[], None],
    ) -> None:
        self._connect = connect
        self._writes = writes
        self._begin = "BEGIN IMMEDIATE" if writes else "BEGIN"
        self._check = check
        self._commits = 0
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._ended: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Start the thread and wait for its connection. Raises what connecting raised."""
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = loop.create_future()
        name = "flowrt-sqlite-" + ("write" if self._writes else "read")
        threading.Thread(target=self._run, args=(opened, loop), name=name, daemon=True).start()
        try:
            await opened
        except asyncio.CancelledError:
            self._jobs.put(None)
            raise

    async def stop(self) -> None:
        """Finish what was asked for, then close the connection and end the thread."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def last(_: sqlite3.Connection) -> None:
            return None

        self._jobs.put(_Job(last, done, loop))
        self._jobs.put(None)
        await done

    async def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` and give its result. Cancelled, it may still happen, whole or not at all."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put(_Job(work, future, loop))
        return await future
