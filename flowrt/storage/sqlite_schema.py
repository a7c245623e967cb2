"""The tables of a SQLite store, as a numbered list of migrations.

Entries of logs have one integer key, ``log << 32 | seq``: they lie together and in order, and an
append touches the last page of its log. Names are stored as UTF-8 bytes: compared exactly, in code
point order. Pages are small, because a page is the least that a commit writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flowrt.errors import StoreError
from flowrt.storage.agents.sqlite_schema import m002_agents, m003_parts
from flowrt.storage.encoding import LOG

if TYPE_CHECKING:
    import sqlite3

APPLICATION = 0x666C7274
"""``flrt``, in the header of the file: a database of another program is left alone."""

PAGE_BYTES = 2048
SEQ_BITS = 32


def m001_initial(db: sqlite3.Connection) -> None:
    """Keys (values, and the heads of logs) and the entries of logs."""
    db.execute(
        "CREATE TABLE keys ("
        " id INTEGER PRIMARY KEY, space BLOB NOT NULL, name BLOB NOT NULL, kind INTEGER NOT NULL,"
        " version INTEGER NOT NULL, generation INTEGER NOT NULL, seq INTEGER NOT NULL,"
        " expires REAL, data BLOB NOT NULL, UNIQUE (space, name))"
    )
    db.execute("CREATE INDEX keys_expiry ON keys (expires) WHERE expires IS NOT NULL")
    db.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY, data BLOB NOT NULL)")


MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [m001_initial, m002_agents, m003_parts]


def migrate(db: sqlite3.Connection) -> None:
    """Bring a database to the newest schema, in one transaction.

    Raises `StoreError` for one of a newer flowrt or of another program.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        (at,) = db.execute("PRAGMA user_version").fetchone()
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION and (tables or at):
            raise StoreError("it is a database of another program; name another file")
        if at > len(MIGRATIONS):
            raise StoreError(
                f"it has schema {at}, this flowrt knows those up to {len(MIGRATIONS)}; "
                "use a newer flowrt or another file"
            )
        if at < len(MIGRATIONS):
            db.execute(f"PRAGMA application_id = {APPLICATION}")
        for number, step in enumerate(MIGRATIONS[at:], at + 1):
            step(db)
            db.execute(f"PRAGMA user_version = {number}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def purge(db: sqlite3.Connection, now: float, most: int) -> None:
    """Remove at most `most` keys that have expired by `now` (seconds since 1970), logs whole."""
    dead = db.execute(
        "SELECT id, kind FROM keys WHERE expires IS NOT NULL AND expires <= ? LIMIT ?", (now, most)
    ).fetchall()
    for number, kind in dead:
        drop(db, number, kind)


def want_scrub(db: sqlite3.Connection) -> None:
    """Note, with a removal, that the file is to be scrubbed: a process that dies does not."""
    db.execute("UPDATE counter SET scrub = 1")


def scrub_is_due(db: sqlite3.Connection) -> bool:
    """Whether a removal was committed and its scrub did not come to its end."""
    (due,) = db.execute("SELECT scrub FROM counter").fetchone()
    return bool(due)


def drop(db: sqlite3.Connection, number: int, kind: int) -> None:
    """Remove a key."""
    if kind == LOG:
        drop_entries(db, number)
    db.execute("DELETE FROM keys WHERE id = ?", (number,))


def drop_entries(db: sqlite3.Connection, log: int) -> None:
    """Remove the entries of a log."""
    db.execute("DELETE FROM entries WHERE id >= ? AND id < ?", span(log))


def span(log: int) -> tuple[int, int]:
    """The ids of a log's entries: from, and up to but not including."""
    return log << SEQ_BITS, (log + 1) << SEQ_BITS
