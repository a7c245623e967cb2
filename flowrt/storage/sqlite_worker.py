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
from flowrt.storage.sqlite_file import SqliteFile, is_busy
from flowrt.storage.sqlite_schema import want_scrub

T = TypeVar("T")

_BATCH = 256
_CHECKPOINT_COMMITS = 500


class _Job(NamedTuple):
    work: Callable[[sqlite3.Connection], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    scrub: bool


class Worker:
    """Runs work on a connection in a thread of its own, in the order it was asked for.

    Work that waits together shares one transaction, so that 200 runs that end at once do not pay
    for 200 commits. Work may raise a `FlowrtError` as long as it has not written; where anything
    else goes wrong, the transaction is rolled back and each work tried in one of its own,
    so that it fails alone. Not the loop's default executor: a service that keeps that busy must
    not keep its own stores waiting.
    """

    def __init__(self, file: SqliteFile, *, writes: bool) -> None:
        self._file = file
        self._writes = writes
        self._begin = "BEGIN IMMEDIATE" if writes else "BEGIN"
        self._commits = 0
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._goodbye: _Job | None = None

    async def start(self) -> None:
        """Start the thread and wait for its connection. Raises `StoreUnavailable`."""
        hello = self._job(lambda db: None)
        name = "flowrt-sqlite-" + ("write" if self._writes else "read")
        threading.Thread(target=self._run, args=(hello,), name=name, daemon=True).start()
        try:
            await hello.future
        except sqlite3.Error as error:
            raise self._file.explain(error) from error
        except asyncio.CancelledError:
            self._jobs.put(None)
            raise

    def stop(self) -> asyncio.Future[None]:
        """Finish what was asked for, then close the connection and end the thread.

        Gives what is done when the connection is closed; nobody has to wait for it.
        """
        self._goodbye = self._job(lambda db: None)
        self._jobs.put(None)
        return self._goodbye.future

    async def do(self, work: Callable[[sqlite3.Connection], T], *, scrub: bool = False) -> T:
        """Run `work` and give its result. Cancelled, it happens whole or not at all.

        With `scrub`, what it removed is not in the files any more when this returns. Raises what
        `work` raised, or `StoreError` where SQLite failed.
        """
        job = self._job(work, scrub=scrub)
        self._jobs.put(job)
        try:
            result: T = await job.future
        except sqlite3.Error as error:
            raise self._file.explain(error) from error
        return result

    def _job(self, work: Callable[[sqlite3.Connection], Any], *, scrub: bool = False) -> _Job:
        loop = asyncio.get_running_loop()
        return _Job(work, loop.create_future(), loop, scrub)

    def _run(self, hello: _Job) -> None:
        try:
            db = self._file.create() if self._writes else self._file.connect()
        except Exception as error:  # noqa: BLE001 - raised again by `start`
            _settle([hello], [error])
            return
        _settle([hello], [None])
        with contextlib.closing(db):
            while (job := self._jobs.get()) is not None:
                jobs, more = self._batch(job)
                _settle(jobs, self._scrub(db, jobs, self._execute(db, jobs)))
                if not more:
                    break
                self._tidy(db)
            self._checkpoint(db, "TRUNCATE")
        if self._goodbye is not None:
            _settle([self._goodbye], [None])

    def _batch(self, first: _Job) -> tuple[list[_Job], bool]:
        """What waits, and whether there may be more: False at the end."""
        jobs = [first]
        while len(jobs) < _BATCH:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return jobs, False
            jobs.append(job)
        return jobs, True

    def _execute(self, db: sqlite3.Connection, jobs: list[_Job]) -> list[Any]:
        try:
            return self._transact(db, jobs)
        except Exception as error:  # noqa: BLE001 - goes to whoever asked for the work
            # Locked by another process: trying each work alone would only wait again.
            if len(jobs) == 1 or isinstance(error, FlowrtError) or is_busy(error):
                return [error] * len(jobs)
        return [self._execute(db, [job])[0] for job in jobs]

    def _transact(self, db: sqlite3.Connection, jobs: list[_Job]) -> list[Any]:
        self._file.begin(db, self._begin)
        try:
            results = [_attempt(db, job) for job in jobs]
            if any(job.scrub for job in jobs):
                want_scrub(db)
            db.execute("COMMIT")
        except BaseException:
            # A full disk has already rolled it back.
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        return results

    def _scrub(self, db: sqlite3.Connection, jobs: list[_Job], results: list[Any]) -> list[Any]:
        """Once for all that ask for it and were committed; what they get where it fails."""
        wanted = [
            job.scrub and not isinstance(result, Exception)
            for job, result in zip(jobs, results, strict=True)
        ]
        if not any(wanted):
            return results
        try:
            self._file.scrub(db)
        except (sqlite3.Error, FlowrtError) as error:
            return [error if want else result for want, result in zip(wanted, results, strict=True)]
        return results

    def _tidy(self, db: sqlite3.Connection) -> None:
        """Move the log into the file while nobody waits, rather than within somebody's commit."""
        self._commits += 1
        if self._commits >= _CHECKPOINT_COMMITS and self._jobs.empty():
            self._commits = 0
            self._checkpoint(db, "PASSIVE")

    def _checkpoint(self, db: sqlite3.Connection, mode: str) -> None:
        if self._writes:
            # Best effort: the data is safe in the log, and the next one who can moves it.
            with contextlib.suppress(sqlite3.Error):
                db.execute(f"PRAGMA wal_checkpoint({mode})")


def _attempt(db: sqlite3.Connection, job: _Job) -> Any:
    if job.future.cancelled():
        return None
    try:
        return job.work(db)
    except FlowrtError as error:
        return error


def _settle(jobs: list[_Job], results: list[Any]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for job, result in zip(jobs, results, strict=True):
        by_loop.setdefault(job.loop, []).append((job.future, result))
    for loop, settled in by_loop.items():
        # A loop that was closed meanwhile has nobody left who waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, settled)


def _resolve(settled: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in settled:
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
