"""The thread that owns a SQLite connection, and commits what waits in one go."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

_BATCH = 256


class _Job(NamedTuple):
    work: Callable[[sqlite3.Connection], Any]
    writes: bool
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class Worker:
    """Runs work on a connection in a thread of its own, in the order it was asked for.

    Writes that wait together share one transaction: 200 runs that end at once do not pay for 200
    commits. A work that raises before it has changed anything fails alone; where the commit fails,
    all of its transaction do.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="flowrt-sqlite", daemon=True)
        self._failure: BaseException | None = None
        self._ready = threading.Event()

    def start(self) -> None:
        """Start the thread and wait for its connection. Raises what connecting raised."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Finish what was asked for, then close the connection and end the thread."""
        self._jobs.put(None)
        self._thread.join()

    async def do(self, work: Callable[[sqlite3.Connection], T], *, writes: bool) -> T:
        """Run `work` and give its result. Cancelled, it may still happen, whole or not at all."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put(_Job(work, writes, future, loop))
        return await future

    def _run(self) -> None:
        try:
            db = self._connect()
        except BaseException as error:  # noqa: BLE001 - raised again by `start`, in its thread
            self._failure = error
            return
        finally:
            self._ready.set()
        with contextlib.closing(db):
            while (job := self._jobs.get()) is not None:
                jobs, last = self._batch(job)
                self._settle(jobs, self._execute(db, jobs))
                if last:
                    break
            with contextlib.suppress(sqlite3.Error):
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _batch(self, first: _Job) -> tuple[list[_Job], bool]:
        jobs = [first]
        while len(jobs) < _BATCH:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return jobs, True
            jobs.append(job)
        return jobs, False

    def _execute(self, db: sqlite3.Connection, jobs: list[_Job]) -> list[Any]:
        writes = any(job.writes for job in jobs)
        results: list[Any] = []
        try:
            if writes:
                db.execute("BEGIN IMMEDIATE")
            for job in jobs:
                results.append(_attempt(db, job))
            if writes:
                db.execute("COMMIT")
        except sqlite3.Error as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            return [error] * len(jobs)
        return results

    def _settle(self, jobs: list[_Job], results: list[Any]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        for job, result in zip(jobs, results, strict=True):
            by_loop.setdefault(job.loop, []).append((job.future, result))
        for loop, settled in by_loop.items():
            # A loop that was closed meanwhile has nobody left who waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, settled)


def _attempt(db: sqlite3.Connection, job: _Job) -> Any:
    try:
        return job.work(db)
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001 - belongs to whoever asked; settled below
        return error


def _resolve(settled: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in settled:
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
