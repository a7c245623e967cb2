"""Facts in a SQLite store, with the values they had before."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flowrt.storage.agents.protocol import Earlier, Fact
from flowrt.storage.agents.sqlite_rows import take
from flowrt.storage.encoding import decode_key, encode_key

if TYPE_CHECKING:
    import sqlite3

_FACT = "SELECT key, id, name, value, version, thread, seq, created, updated FROM facts"


class Value(NamedTuple):
    """A value of a fact, and where it came from."""

    value: bytes
    thread: bytes
    seq: int
    at: float


class FactRow(NamedTuple):
    """A fact with its newest value. `key` stays the same over all its values."""

    key: int
    id: int
    name: bytes
    value: bytes
    version: int
    thread: bytes
    seq: int
    created: float
    updated: float

    def fact(self, earlier: tuple[Earlier, ...] = ()) -> Fact:
        """What the store's callers get."""
        return Fact(
            id=self.id,
            name=decode_key(self.name),
            value=decode_key(self.value),
            version=self.version,
            thread=decode_key(self.thread),
            seq=self.seq,
            created=self.created,
            updated=self.updated,
            earlier=earlier,
        )


def find_fact(db: sqlite3.Connection, person: int | None, name: str) -> FactRow | None:
    """A fact about a person."""
    found = db.execute(
        _FACT + " WHERE person = ? AND name = ?", (person, encode_key(name))
    ).fetchone()
    return None if found is None else FactRow(*found)


def list_facts(
    db: sqlite3.Connection, person: int | None, before: int, limit: int
) -> list[FactRow]:
    """Facts about a person whose id is under `before`, the last changed first."""
    found = db.execute(
        _FACT + " WHERE person = ? AND id < ? ORDER BY id DESC LIMIT ?", (person, before, limit)
    )
    return [FactRow(*row) for row in found]


def earlier(db: sqlite3.Connection, fact: int) -> tuple[Earlier, ...]:
    """The values that a fact had before, oldest first."""
    found = db.execute(
        "SELECT value, version, thread, seq, at FROM earlier WHERE fact = ? ORDER BY version",
        (fact,),
    )
    return tuple(
        Earlier(decode_key(value), version, decode_key(thread), seq, at)
        for value, version, thread, seq, at in found
    )


def put(
    db: sqlite3.Connection, person: int, name: str, before: FactRow | None, new: Value
) -> FactRow:
    """Write a fact's value; the one before goes among the earlier ones, its vector goes."""
    number = take(db)
    if before is None:
        added = db.execute(
            "INSERT INTO facts (id, person, name, value, version, thread, seq, created, updated)"
            " VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?)",
            (number, person, encode_key(name), new.value, new.thread, new.seq, new.at, new.at),
        )
        key = int(added.lastrowid or 0)
        values = (new.value, 1, new.thread, new.seq, new.at, new.at)
        return FactRow(key, number, encode_key(name), *values)
    db.execute(
        "INSERT INTO earlier (fact, version, value, thread, seq, at) VALUES (?, ?, ?, ?, ?, ?)",
        (before.key, before.version, before.value, before.thread, before.seq, before.updated),
    )
    _drop_vector(db, before)
    db.execute(
        "UPDATE facts SET id = ?, value = ?, version = version + 1, thread = ?, seq = ?,"
        " updated = ? WHERE key = ?",
        (number, new.value, new.thread, new.seq, new.at, before.key),
    )
    return before._replace(
        id=number,
        value=new.value,
        version=before.version + 1,
        thread=new.thread,
        seq=new.seq,
        updated=new.at,
    )


def drop(db: sqlite3.Connection, fact: FactRow) -> None:
    """Remove a fact with its earlier values and its vector."""
    _drop_vector(db, fact)
    db.execute("DELETE FROM earlier WHERE fact = ?", (fact.key,))
    db.execute("DELETE FROM facts WHERE key = ?", (fact.key,))


def _drop_vector(db: sqlite3.Connection, fact: FactRow) -> None:
    db.execute("DELETE FROM vectors WHERE id = ?", (fact.id,))
