"""The tables of a SQLite store, as a numbered list of migrations.

Entries of logs have one integer key, ``log << 32 | seq``: they lie together and in order, an
append touches the last page of its log, and a row may fill most of a page before it overflows.
Names are stored as UTF-8 bytes: compared exactly, in code point order.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

SEQ_BITS = 32


def m001_initial(db: sqlite3.Connection) -> None:
    db.execute(
        "CREATE TABLE keys ("
        " id INTEGER PRIMARY KEY, space BLOB NOT NULL, name BLOB NOT NULL, kind INTEGER NOT NULL,"
        " version INTEGER NOT NULL, generation INTEGER NOT NULL, seq INTEGER NOT NULL,"
        " expires REAL, data BLOB NOT NULL, UNIQUE (space, name))"
    )
    db.execute("CREATE INDEX keys_expiry ON keys (expires) WHERE expires IS NOT NULL")
    db.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY, data BLOB NOT NULL)")


MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [m001_initial]


def migrate(db: sqlite3.Connection) -> None:
    """Bring a database to the newest schema; one of a newer flowrt is refused."""
    db.execute("BEGIN IMMEDIATE")
    try:
        (at,) = db.execute("PRAGMA user_version").fetchone()
        if at > len(MIGRATIONS):
            raise sqlite3.DatabaseError(
                f"the file has schema {at}, this flowrt knows up to {len(MIGRATIONS)}; "
                "use a newer flowrt or another file"
            )
        for number, step in enumerate(MIGRATIONS[at:], at + 1):
            step(db)
            db.execute(f"PRAGMA user_version = {number}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
