"""Looking at the file of a SQLite store without opening the store, which would migrate it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from flowrt.errors import StoreUnavailable
from flowrt.storage.sqlite_schema import APPLICATION, MIGRATIONS


@dataclass(frozen=True, slots=True)
class Inspected:
    """What the header of the file says, and what SQLite itself finds wrong with it."""

    schema: int
    ours: bool
    damage: list[str]

    @property
    def newest(self) -> int:
        """The schema that this flowrt brings a file to."""
        return len(MIGRATIONS)


def inspect_sqlite(path: Path) -> Inspected:
    """Read the header and check the pages. Raises `StoreUnavailable`."""
    with _reading(path) as db:
        (schema,) = db.execute("PRAGMA user_version").fetchone()
        (application,) = db.execute("PRAGMA application_id").fetchone()
        found = [text for (text,) in db.execute("PRAGMA quick_check(10)")]
        return Inspected(schema, application == APPLICATION, [t for t in found if t != "ok"])


def copy_sqlite(path: Path, to: Path) -> None:
    """Copy the file with what its log still holds. Raises `StoreUnavailable`."""
    with _reading(path) as source, closing(sqlite3.connect(to)) as copy:
        source.backup(copy)


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    # Without a log nobody has the file open, and SQLite would make one to read it.
    logged = path.with_name(f"{path.name}-wal").exists()
    how = "mode=ro" if logged else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)) as db:
            yield db
    except sqlite3.Error as error:
        raise StoreUnavailable(f"storage sqlite:{path} cannot be read: {error}") from error
