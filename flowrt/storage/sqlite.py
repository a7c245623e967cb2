"""A store in a SQLite file: the default, for one machine and any number of its processes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from flowrt.errors import StoreError, StoreUnavailable, VersionConflict
from flowrt.storage.encoding import (
    LOG,
    decode_key,
    decode_value,
    encode_json,
    encode_key,
    encode_value,
)
from flowrt.storage.filelock import FileLease, LockFile, try_file_lease
from flowrt.storage.protocol import Key, Log, Page, Stored
from flowrt.storage.sqlite_schema import SEQ_BITS, migrate
from flowrt.storage.sqlite_worker import Worker

BUSY_SECONDS = 10.0
"""How long a write waits for another process's transaction before it fails."""

T = TypeVar("T")
_Row = tuple[int, int, int, int, int, bytes]
_FIND = "SELECT id, kind, version, generation, seq, data FROM keys WHERE space = ? AND name = ?"


class SqliteStore:
    """Keeps everything in one file, readable by its owner only.

    Write-ahead log, short transactions begun as writers, synchronous NORMAL: a crash of the
    process loses nothing that was acknowledged, a power cut may lose the last moments but never
    the file. Leases are locks on `PATH.lock`.
    """

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self.url = f"sqlite:{path}"
        self._now = clock
        self._worker: Worker | None = None
        self._lock: LockFile | None = None

    async def open(self) -> None:
        """Create the file and its folders where they are missing, and migrate it."""
        worker = Worker(self._connect)
        try:
            await asyncio.to_thread(worker.start)
        except (OSError, sqlite3.Error) as error:
            raise StoreUnavailable(f"storage {self.url} cannot be opened: {error}") from error
        self._worker = worker
        self._lock = LockFile.acquire(self.path.with_name(self.path.name + ".lock"))

    async def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await asyncio.to_thread(worker.stop)
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives its -wal and -shm files the permissions of the database.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        migrate(db)
        db.execute("DELETE FROM keys WHERE kind != ? AND expires <= ?", (LOG, self._now()))
        return db

    async def _do(self, work: Callable[[sqlite3.Connection], T], *, writes: bool = False) -> T:
        if self._worker is None:
            raise StoreError(f"storage {self.url} is not open")
        try:
            return await self._worker.do(work, writes=writes)
        except sqlite3.Error as error:
            raise StoreError(f"storage {self.url} failed: {error}") from error

    async def get(self, space: str, key: str) -> Stored | None:
        def read(db: sqlite3.Connection) -> Stored | None:
            row = self._row(db, space, key)
            if row is None:
                return None
            _of_kind(row, key, log=False)
            return Stored(decode_value(row[1], row[5]), row[2])

        return await self._do(read)

    async def set(
        self,
        space: str,
        key: str,
        value: Any,
        *,
        expect: int | None = None,
        ttl: float | None = None,
    ) -> int:
        kind, data = encode_value(value)

        def write(db: sqlite3.Connection) -> int:
            row = self._expected(db, space, key, expect)
            if row is not None:
                _of_kind(row, key, log=False)
            return self._put(db, space, key, row, (kind, 1, 0, self._until(ttl), data))

        return await self._do(write, writes=True)

    async def delete(self, space: str, key: str, *, expect: int | None = None) -> bool:
        def write(db: sqlite3.Connection) -> bool:
            row = self._expected(db, space, key, expect)
            if row is None:
                return False
            self._forget(db, row)
            return True

        return await self._do(write, writes=True)

    async def append(
        self,
        space: str,
        key: str,
        entries: Sequence[bytes],
        *,
        head: Any = None,
        expect: int | None = None,
        ttl: float | None = None,
    ) -> int:
        data = encode_json(head)

        def write(db: sqlite3.Connection) -> int:
            row = self._expected(db, space, key, expect)
            generation, seq = 1, 0
            if row is not None:
                _of_kind(row, key, log=True)
                generation, seq = row[3], row[4]
            values = (LOG, generation, seq + len(entries), self._until(ttl), data)
            version = self._put(db, space, key, row, values)
            self._add(db, row[0] if row else _last_id(db), seq, entries)
            return version

        return await self._do(write, writes=True)

    async def rewrite(
        self,
        space: str,
        key: str,
        entries: Sequence[bytes],
        *,
        head: Any = None,
        expect: int | None = None,
        ttl: float | None = None,
    ) -> int:
        data = encode_json(head)

        def write(db: sqlite3.Connection) -> int:
            row = self._expected(db, space, key, expect)
            generation = 1
            if row is not None:
                _of_kind(row, key, log=True)
                generation = row[3] + 1
                _drop_entries(db, row[0])
            values = (LOG, generation, len(entries), self._until(ttl), data)
            version = self._put(db, space, key, row, values)
            self._add(db, row[0] if row else _last_id(db), 0, entries)
            return version

        return await self._do(write, writes=True)

    async def read_log(self, space: str, key: str) -> Log | None:
        def read(db: sqlite3.Connection) -> Log | None:
            row = self._row(db, space, key)
            if row is None:
                return None
            _of_kind(row, key, log=True)
            found = db.execute(
                "SELECT data FROM entries WHERE id >= ? AND id < ? ORDER BY id", _span(row[0])
            )
            entries = [entry for (entry,) in found]
            return Log(decode_value(0, row[5]), entries, row[2], row[3])

        return await self._do(read)

    async def scan(
        self, space: str, prefix: str = "", *, after: str | None = None, limit: int = 500
    ) -> Page:
        low = encode_key(prefix)
        # No UTF-8 byte is 0xFF, so this is above every key with the prefix.
        high = low + b"\xff"
        from_ = encode_key(after) if after is not None else None

        def read(db: sqlite3.Connection) -> Page:
            rows = db.execute(
                "SELECT name, version, kind FROM keys WHERE space = ? AND name >= ? AND name < ?"
                " AND name > ? AND (expires IS NULL OR expires > ?) ORDER BY name LIMIT ?",
                (encode_key(space), low, high, from_ or b"", self._now(), limit + 1),
            ).fetchall()
            keys = [
                Key(decode_key(name), version, "log" if kind == LOG else "value")
                for name, version, kind in rows[:limit]
            ]
            return Page(keys, keys[-1].name if len(rows) > limit else None)

        return await self._do(read)

    async def try_lease(
        self, space: str, key: str, *, ttl: float, on_lost: Callable[[], None] | None = None
    ) -> FileLease | None:
        """A lock of the operating system: `ttl` is not needed, a dead process holds nothing."""
        if self._lock is None:
            raise StoreError(f"storage {self.url} is not open")
        try:
            return try_file_lease(self._lock, space, key, on_lost)
        except OSError as error:
            raise StoreError(f"storage {self.url}: cannot lock: {error}") from error

    def _until(self, ttl: float | None) -> float | None:
        return None if ttl is None else self._now() + ttl

    def _row(self, db: sqlite3.Connection, space: str, key: str) -> _Row | None:
        row: _Row | None = db.execute(
            _FIND + " AND (expires IS NULL OR expires > ?)",
            (encode_key(space), encode_key(key), self._now()),
        ).fetchone()
        return row

    def _expected(
        self, db: sqlite3.Connection, space: str, key: str, expect: int | None
    ) -> _Row | None:
        """The row a write is based on; an expired one is removed first."""
        row = self._row(db, space, key)
        actual = row[2] if row else 0
        if expect is not None and expect != actual:
            raise VersionConflict(key, expect, actual)
        if row is None:
            dead: _Row | None = db.execute(_FIND, (encode_key(space), encode_key(key))).fetchone()
            if dead is not None:
                self._forget(db, dead)
        return row

    def _put(
        self,
        db: sqlite3.Connection,
        space: str,
        key: str,
        row: _Row | None,
        values: tuple[int, int, int, float | None, bytes],
    ) -> int:
        """Write the row of a key; `values` are kind, generation, seq, expiry and data."""
        if row is None:
            db.execute(
                "INSERT INTO keys (space, name, version, kind, generation, seq, expires, data)"
                " VALUES (?, ?, 1, ?, ?, ?, ?, ?)",
                (encode_key(space), encode_key(key), *values),
            )
            return 1
        db.execute(
            "UPDATE keys SET version = version + 1, kind = ?, generation = ?, seq = ?,"
            " expires = ?, data = ? WHERE id = ?",
            (*values, row[0]),
        )
        return row[2] + 1

    def _add(self, db: sqlite3.Connection, log: int, seq: int, entries: Sequence[bytes]) -> None:
        first = (log << SEQ_BITS) + seq
        db.executemany(
            "INSERT INTO entries (id, data) VALUES (?, ?)",
            [(first + index, entry) for index, entry in enumerate(entries)],
        )

    def _forget(self, db: sqlite3.Connection, row: _Row) -> None:
        if row[1] == LOG:
            _drop_entries(db, row[0])
        db.execute("DELETE FROM keys WHERE id = ?", (row[0],))


def _of_kind(row: _Row, key: str, *, log: bool) -> None:
    if (row[1] == LOG) != log:
        found, wanted = ("a value", "a log") if log else ("a log", "a value")
        raise StoreError(f"key {key!r} holds {found}, not {wanted}")


def _span(log: int) -> tuple[int, int]:
    return log << SEQ_BITS, (log + 1) << SEQ_BITS


def _drop_entries(db: sqlite3.Connection, log: int) -> None:
    db.execute("DELETE FROM entries WHERE id >= ? AND id < ?", _span(log))


def _last_id(db: sqlite3.Connection) -> int:
    (last,) = db.execute("SELECT last_insert_rowid()").fetchone()
    return int(last)
