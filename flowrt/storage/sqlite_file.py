"""The file behind a SQLite store: its connections, its permissions, and what its errors mean."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path

from flowrt.clock import Clock
from flowrt.errors import StoreError, StoreUnavailable
from flowrt.observe.log import get_logger
from flowrt.storage.filelock import make_private_folder
from flowrt.storage.sqlite_schema import PAGE_BYTES, migrate, purge, scrub_is_due

BUSY_SECONDS = 10.0
"""How long a write waits for another process's transaction before it fails."""

REWRITE_RATE = 20e6
"""Bytes of a file that are rewritten in a second, at the least: half of the slowest measured.

Waiting `BUSY_SECONDS` whatever the size, the other processes on a file of 700 MB failed while one
of them forgot somebody.
"""

_CHECKPOINT_PAUSE = 0.02
_LOG_PAGES = 4000
_PURGED_AT_START = 1000

_log = get_logger("flowrt.storage")


class SqliteFile:
    """One database file, as one store of this process uses it."""

    def __init__(self, path: Path, url: str, clock: Clock) -> None:
        self.path = path
        self.url = url
        self._clock = clock
        self._identity = (0, 0)

    def create(self) -> sqlite3.Connection:
        """A connection for writing, to a file that exists, is ours, and is at the newest schema."""
        try:
            make_private_folder(self.path.parent)
            # Not where the file is there already: closing it would drop the locks that other
            # connections of this process hold on it. SQLite gives -wal and -shm its permissions.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            db = self.connect()
            try:
                self._prepare(db)
            except BaseException:
                db.close()
                raise
        except (OSError, sqlite3.Error, StoreError) as error:
            raise StoreUnavailable(f"storage {self.url} cannot be opened: {error}") from error
        return db

    def connect(self) -> sqlite3.Connection:
        """A connection; its owner begins and ends transactions."""
        db = sqlite3.connect(self.path, timeout=self._patience(), isolation_level=None)
        try:
            db.execute("PRAGMA synchronous = NORMAL")
            # What is removed or replaced is overwritten with zeros in the pages it was in.
            db.execute("PRAGMA secure_delete = ON")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def begin(self, db: sqlite3.Connection, how: str) -> None:
        """Begin a transaction, once another process's has ended.

        Raises `StoreUnavailable` where the file is gone: SQLite would go on writing into a file
        that was removed, and all of it would be lost.
        """
        self._check()
        db.execute(f"PRAGMA busy_timeout = {self._patience() * 1000:.0f}")
        db.execute(how)

    def _check(self) -> None:
        try:
            same = self._identify() == self._identity
        except OSError:
            same = False
        if not same:
            raise StoreUnavailable(
                f"storage {self.url} is gone: the file was removed or replaced while it was open; "
                "restart what uses it"
            )

    def scrub(self, db: sqlite3.Connection) -> None:
        """Rewrite the file and empty the log, so that they hold nothing but what is stored.

        `secure_delete` alone does not. It overwrites rows where they are, and pages that become
        free; but where SQLite spreads rows over neighbouring pages anew, it copies them and leaves
        what was there in the unused middle of a page, with rows that are removed later. No pragma
        cleans that: `incremental_vacuum` moves pages as they are, an emptied log only keeps its
        own copies from staying. The pages could be overwritten without SQLite, but a process that
        opens and closes the file for it drops the locks that its own connections hold. Raises
        `StoreUnavailable` where another process reads on.
        """
        db.execute("VACUUM")
        patience = self._patience()
        until = time.monotonic() + patience
        while db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() < until:
                # SQLite waits for readers, and not for somebody else's checkpoint: two processes
                # that forget at once would each tell the other's as a failure of theirs.
                time.sleep(_CHECKPOINT_PAUSE)
                continue
            raise StoreUnavailable(
                f"storage {self.url}: removed, but it may still be readable in {self.path}-wal: "
                f"another process has been reading for {patience:.0f} s; remove it once more"
            )
        db.execute("UPDATE counter SET scrub = 0")

    def explain(self, error: sqlite3.Error) -> StoreError:
        """What to tell whoever asked for the work that failed."""
        if is_busy(error):
            return StoreUnavailable(
                f"storage {self.url} is locked: another process has been writing to it "
                f"for {self._patience():.0f} s"
            )
        return StoreError(f"storage {self.url} failed: {error}")

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        if _use_wal(db) != "wal":
            _log.warning(
                "SQLite cannot keep a write-ahead log here, so readers wait for writers; "
                "is the file on a network share?",
                url=self.url,
            )
        # Of last resort: the worker checkpoints before, when nobody waits.
        db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        migrate(db)
        db.execute("BEGIN IMMEDIATE")
        purge(db, self._clock.now().timestamp(), _PURGED_AT_START)
        db.execute("COMMIT")
        self._identity = self._identify()
        if scrub_is_due(db):
            # Best effort: another process that reads on must not keep this one from starting.
            with contextlib.suppress(StoreUnavailable):
                self.scrub(db)

    def _patience(self) -> float:
        """Seconds that are waited for another process: what one removes rewrites the file."""
        size = 0
        with contextlib.suppress(FileNotFoundError):
            size = self.path.stat().st_size
        return BUSY_SECONDS + size / REWRITE_RATE

    def _identify(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_dev, found.st_ino


def is_busy(error: Exception) -> bool:
    """Whether another connection did not let go in time."""
    # Errors that Python's own layer raises carry no code.
    code = getattr(error, "sqlite_errorcode", 0) if isinstance(error, sqlite3.Error) else 0
    return code & 0xFF == sqlite3.SQLITE_BUSY


def _use_wal(db: sqlite3.Connection) -> str:
    """Ask for the write-ahead log, which SQLite refuses at once while another process does so."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return str(mode)
