"""Parts of the indexes that searches make, in a SQLite store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowrt.storage.agents.protocol import IndexPart

if TYPE_CHECKING:
    import sqlite3


def epoch(db: sqlite3.Connection, person: int | None) -> int:
    """The epoch of a person; 0 for one nobody knows."""
    found = db.execute("SELECT epoch FROM people WHERE id = ?", (person,)).fetchone()
    return 0 if found is None else int(found[0])


def put(db: sqlite3.Connection, person: int | None, part: IndexPart, made_in: int) -> bool:
    """Keep a part in place of those it overlaps, where the epoch is still that it was made in."""
    if person is None or epoch(db, person) != made_in:
        return False
    db.execute(
        "DELETE FROM parts WHERE person = ? AND first <= ? AND last >= ?",
        (person, part.last, part.first),
    )
    db.execute(
        "INSERT INTO parts (person, first, last, data) VALUES (?, ?, ?, ?)",
        (person, part.first, part.last, part.data),
    )
    return True


def list_parts(
    db: sqlite3.Connection, person: int | None, after: int, limit: int
) -> list[IndexPart]:
    """The parts of a person that begin behind an id."""
    found = db.execute(
        "SELECT first, last, data FROM parts WHERE person = ? AND first > ? ORDER BY first LIMIT ?",
        (person, after, limit),
    )
    return [IndexPart(*row) for row in found]


def drop_around(db: sqlite3.Connection, person: int, thread: int) -> None:
    """Remove the parts in whose range there is a turn of a thread."""
    db.execute(
        "DELETE FROM parts WHERE person = ? AND EXISTS"
        " (SELECT 1 FROM turns WHERE thread = ? AND turns.id BETWEEN first AND last)",
        (person, thread),
    )
