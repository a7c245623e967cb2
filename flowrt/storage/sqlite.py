"""A store in a SQLite file: the default, for one machine and any number of its processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from flowrt.clock import Clock, SystemClock
from flowrt.errors import StoreError, VersionConflict
from flowrt.storage.encoding import (
    JSON,
    LOG,
    check_kind,
    decode_key,
    decode_value,
    encode_entries,
    encode_json,
    encode_key,
    encode_value,
    kind_name,
    lifetime,
)
from flowrt.storage.filelock import FileLease, LockFile, try_file_lease
from flowrt.storage.protocol import Key, Log, Page, Stored
from flowrt.storage.sqlite_schema import SEQ_BITS, drop, drop_entries, purge, span

if TYPE_CHECKING:
    import sqlite3

    from flowrt.storage.agents.sqlite import SqliteAgentStore
    from flowrt.storage.sqlite_worker import Worker

_PURGED = 4
"""Expired keys that a write removes on its way."""

T = TypeVar("T")
_FIND = "SELECT id, kind, version, generation, seq, data FROM keys WHERE space = ? AND name = ?"
_DEAD = "SELECT id, kind FROM keys WHERE space = ? AND name = ?"


class _Row(NamedTuple):
    id: int
    kind: int
    version: int
    generation: int
    seq: int
    data: bytes


class SqliteStore:
    """Keeps everything in one file, readable by its owner only.

    Write-ahead log, short transactions begun as writers, synchronous NORMAL: a crash of the
    process loses nothing that was acknowledged, a power cut may lose the last moments but never
    the file. Reads have a connection of their own and wait for no writer. Leases are locks on
    `PATH.lock`.
    """

    def __init__(self, path: str | Path, *, clock: Clock | None = None) -> None:
        # Absolute: the process may change its working directory while the store is open.
        self.path = Path(path).expanduser().absolute()
        self.url = f"sqlite:{path}"
        self._clock = clock or SystemClock()
        self._writer: Worker | None = None
        self._reader: Worker | None = None
        self._lock: LockFile | None = None

    async def open(self) -> None:
        """Create the file and its folders where they are missing, and migrate it.

        SQLite is imported here: a run that uses no store does not pay for it.
        """
        if self._writer is not None:
            return
        from flowrt.storage.sqlite_file import SqliteFile
        from flowrt.storage.sqlite_worker import Worker

        file = SqliteFile(self.path, self.url, self._clock)
        writer, reader = Worker(file, writes=True), Worker(file, writes=False)
        await writer.start()
        try:
            await reader.start()
        except BaseException:
            writer.stop()
            raise
        self._writer, self._reader = writer, reader
        self._lock = LockFile.acquire(self.path.with_name(self.path.name + ".lock"))

    async def close(self) -> None:
        """Finish the writes under way, move the log into the file, and let go of all leases."""
        workers, self._reader, self._writer = (self._reader, self._writer), None, None
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()
        # Both are told before either is waited for: cancelled here, both end all the same.
        ended = [worker.stop() for worker in workers if worker is not None]
        if ended:
            await asyncio.wait(ended)

    def agents(self) -> SqliteAgentStore:
        """The record of agents, in the same file and on the same connections."""
        from flowrt.storage.agents.sqlite import SqliteAgentStore

        return SqliteAgentStore(self._read, self._write, self._now)

    async def _write(self, work: Callable[[sqlite3.Connection], T], *, scrub: bool = False) -> T:
        return await self._open_worker(self._writer).do(work, scrub=scrub)

    async def _read(self, work: Callable[[sqlite3.Connection], T], *, scrub: bool = False) -> T:
        return await self._open_worker(self._reader).do(work, scrub=scrub)

    def _open_worker(self, worker: Worker | None) -> Worker:
        if worker is None:
            raise StoreError(f"storage {self.url} is not open")
        return worker

    def _now(self) -> float:
        return self._clock.now().timestamp()

    async def get(self, space: str, key: str) -> Stored | None:
        def read(db: sqlite3.Connection) -> Stored | None:
            row = self._row(db, space, key)
            if row is None:
                return None
            check_kind(key, row.kind, log=False)
            return Stored(decode_value(row.kind, row.data), row.version)

        return await self._read(read)

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
        expires = self._expires(ttl)

        def write(db: sqlite3.Connection) -> int:
            row = self._expected(db, space, key, expect)
            if row is not None:
                check_kind(key, row.kind, log=False)
            return self._put(db, space, key, row, (kind, 1, 0, expires, data))[1]

        return await self._write(write)

    async def delete(self, space: str, key: str, *, expect: int | None = None) -> bool:
        def write(db: sqlite3.Connection) -> bool:
            row = self._expected(db, space, key, expect)
            if row is not None:
                drop(db, row.id, row.kind)
            return row is not None

        return await self._write(write)

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
        data, new, expires = encode_json(head), encode_entries(entries), self._expires(ttl)

        def write(db: sqlite3.Connection) -> int:
            row = self._expected(db, space, key, expect)
            generation, seq = 1, 0
            if row is not None:
                check_kind(key, row.kind, log=True)
                generation, seq = row.generation, row.seq
            values = (LOG, generation, seq + len(new), expires, data)
            log, version = self._put(db, space, key, row, values)
            _add(db, log, seq, new)
            return version

        return await self._write(write)

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
        data, new, expires = encode_json(head), encode_entries(entries), self._expires(ttl)

        def write(db: sqlite3.Connection) -> int:
            row = self._expected(db, space, key, expect)
            generation = 1
            if row is not None:
                check_kind(key, row.kind, log=True)
                generation = row.generation + 1
                drop_entries(db, row.id)
            values = (LOG, generation, len(new), expires, data)
            log, version = self._put(db, space, key, row, values)
            _add(db, log, 0, new)
            return version

        return await self._write(write)

    async def read_log(self, space: str, key: str, *, entries: bool = True) -> Log | None:
        def read(db: sqlite3.Connection) -> tuple[_Row, list[bytes]] | None:
            row = self._row(db, space, key)
            if row is None:
                return None
            check_kind(key, row.kind, log=True)
            if not entries:
                return row, []
            found = db.execute(
                "SELECT data FROM entries WHERE id >= ? AND id < ? ORDER BY id", span(row.id)
            )
            return row, [entry for (entry,) in found]

        found = await self._read(read)
        if found is None:
            return None
        row, kept = found
        return Log(decode_value(JSON, row.data), kept, row.version, row.generation)

    async def scan(
        self, space: str, prefix: str = "", *, after: str | None = None, limit: int = 500
    ) -> Page:
        low = encode_key(prefix)
        # No UTF-8 byte is 0xFF, so this is above every key with the prefix.
        high = low + b"\xff"
        where, start = "name >= ?", low
        if after is not None and encode_key(after) >= low:
            where, start = "name > ?", encode_key(after)

        def read(db: sqlite3.Connection) -> Page:
            rows = db.execute(
                f"SELECT name, version, kind FROM keys WHERE space = ? AND {where} AND name < ?"  # noqa: S608 - one of two constants
                " AND (expires IS NULL OR expires > ?) ORDER BY name LIMIT ?",
                (encode_key(space), start, high, self._now(), limit + 1),
            ).fetchall()
            keys = [Key(decode_key(name), version, kind_name(kind)) for name, version, kind in rows]
            return Page(keys[:limit], keys[limit - 1].name if len(keys) > limit else None)

        return await self._read(read)

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

    def _expires(self, ttl: float | None) -> float | None:
        seconds = lifetime(ttl)
        return None if seconds is None else self._now() + seconds

    def _row(self, db: sqlite3.Connection, space: str, key: str) -> _Row | None:
        found = db.execute(
            _FIND + " AND (expires IS NULL OR expires > ?)",
            (encode_key(space), encode_key(key), self._now()),
        ).fetchone()
        return None if found is None else _Row(*found)

    def _expected(
        self, db: sqlite3.Connection, space: str, key: str, expect: int | None
    ) -> _Row | None:
        """The row a write is based on.

        Before anything else, a few keys that expired are removed: afterwards, one that expires
        just now could be the one that is written.
        """
        purge(db, self._now(), _PURGED)
        row = self._row(db, space, key)
        actual = row.version if row else 0
        if expect is not None and expect != actual:
            raise VersionConflict(key, expect, actual)
        return row

    def _put(
        self,
        db: sqlite3.Connection,
        space: str,
        key: str,
        row: _Row | None,
        values: tuple[int, int, int, float | None, bytes],
    ) -> tuple[int, int]:
        """Write the row of a key and give its id and version.

        `values` are kind, generation, seq, expiry and data.
        """
        if row is not None:
            db.execute(
                "UPDATE keys SET version = version + 1, kind = ?, generation = ?, seq = ?,"
                " expires = ?, data = ? WHERE id = ?",
                (*values, row.id),
            )
            return row.id, row.version + 1
        place = encode_key(space), encode_key(key)
        # Left by a lifetime that ended: its version starts again.
        for number, kind in db.execute(_DEAD, place).fetchall():
            drop(db, number, kind)
        added = db.execute(
            "INSERT INTO keys (space, name, version, kind, generation, seq, expires, data)"
            " VALUES (?, ?, 1, ?, ?, ?, ?, ?)",
            (*place, *values),
        )
        return int(added.lastrowid or 0), 1


def _add(db: sqlite3.Connection, log: int, seq: int, entries: Sequence[bytes]) -> None:
    first = (log << SEQ_BITS) + seq
    db.executemany("INSERT INTO entries (id, data) VALUES (?, ?)", enumerate(entries, first))
