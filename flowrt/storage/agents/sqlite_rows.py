"""Rows of the record in a SQLite store: finding them, making them, removing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flowrt.storage.agents import sqlite_parts
from flowrt.storage.agents.protocol import Person, Place, Removed, ThreadInfo
from flowrt.storage.encoding import decode_key, encode_key

if TYPE_CHECKING:
    import sqlite3

_THREAD = (
    "SELECT threads.id, threads.agent, threads.person, people.name, threads.title, threads.turns,"
    " threads.version, threads.created, threads.active, threads.stamp, threads.name"
    " FROM threads JOIN people ON people.id = threads.person"
)


class ThreadRow(NamedTuple):
    """A thread with the name of its person."""

    id: int
    agent: int
    person: int
    user: bytes
    title: bytes
    turns: int
    version: int
    created: float
    active: float
    stamp: int
    name: bytes

    def info(self, agent: str) -> ThreadInfo:
        """What the store's callers get."""
        return ThreadInfo(
            agent=agent,
            thread=decode_key(self.name),
            user=decode_key(self.user),
            title=decode_key(self.title),
            turns=self.turns,
            version=self.version,
            created=self.created,
            active=self.active,
        )


def take(db: sqlite3.Connection, count: int = 1) -> int:
    """The first of `count` numbers that were never given before."""
    db.execute("UPDATE counter SET last = last + ?", (count,))
    (last,) = db.execute("SELECT last FROM counter").fetchone()
    return int(last) - count + 1


def find_agent(db: sqlite3.Connection, service: str, agent: str) -> int | None:
    """The number of an agent."""
    found = db.execute(
        "SELECT id FROM agents WHERE service = ? AND name = ?",
        (encode_key(service), encode_key(agent)),
    ).fetchone()
    return None if found is None else int(found[0])


def find_person(db: sqlite3.Connection, person: Person) -> int | None:
    """The number of a person."""
    found = db.execute(
        "SELECT people.id FROM agents JOIN people ON people.agent = agents.id"
        " WHERE agents.service = ? AND agents.name = ? AND people.name = ?",
        tuple(map(encode_key, person)),
    ).fetchone()
    return None if found is None else int(found[0])


def find_thread(db: sqlite3.Connection, place: Place) -> ThreadRow | None:
    """A thread; None where it is another user's than the one asked for."""
    agent = find_agent(db, place.service, place.agent)
    where, values = " WHERE threads.agent = ? AND threads.name = ?", [encode_key(place.thread)]
    if place.user:
        where += " AND people.name = ?"
        values.append(encode_key(place.user))
    found = db.execute(_THREAD + where, (agent, *values)).fetchone()
    return None if found is None else ThreadRow(*found)


def list_threads(
    db: sqlite3.Connection, agent: int, user: str | None, before: int, limit: int
) -> list[ThreadRow]:
    """Threads of an agent whose stamp is under `before`, the last active first."""
    where = " WHERE threads.agent = ?"
    values: tuple[int | bytes, ...] = (agent,)
    if user is not None:
        # One person of one agent: the range of an index, as for the agent.
        where = " WHERE threads.person = (SELECT id FROM people WHERE agent = ? AND name = ?)"
        values += (encode_key(user),)
    found = db.execute(
        _THREAD + where + " AND threads.stamp < ? ORDER BY threads.stamp DESC LIMIT ?",
        (*values, before, limit),
    )
    return [ThreadRow(*row) for row in found]


def same_user(db: sqlite3.Connection, service: str, user: str, agent: str | None) -> list[int]:
    """The numbers that a user has with the agents of a service, or with one of them."""
    where, values = "agents.service = ? AND people.name = ?", [service, user]
    if agent is not None:
        where += " AND agents.name = ?"
        values.append(agent)
    found = db.execute(
        f"SELECT people.id FROM agents JOIN people ON people.agent = agents.id WHERE {where}",  # noqa: S608 - constants
        tuple(map(encode_key, values)),
    )
    return [number for (number,) in found]


def version(db: sqlite3.Connection, person: Person) -> int:
    """The version of a person; 0 for one nobody knows."""
    number = find_person(db, person)
    found = db.execute("SELECT version FROM people WHERE id = ?", (number,)).fetchone()
    return 0 if found is None else int(found[0])


def know(db: sqlite3.Connection, person: Person) -> int:
    """The number of a person, who is made known where they are not."""
    known = find_person(db, person)
    if known is not None:
        return known
    agent = _know_agent(db, person.service, person.agent)
    return _know_user(db, agent, encode_key(person.user))


def work_on(db: sqlite3.Connection, place: Place, now: float) -> ThreadRow:
    """The thread to write to, now the last active of its agent, and whose it is settled."""
    row = find_thread(db, place._replace(user=""))
    if row is None:
        row = _create(db, place, now)
    elif place.user and not row.user:
        row = _attribute(db, row, place.user)
    row = row._replace(version=row.version + 1, active=now, stamp=take(db))
    db.execute(
        "UPDATE threads SET version = ?, active = ?, stamp = ? WHERE id = ?",
        (row.version, row.active, row.stamp, row.id),
    )
    return row


def changed(db: sqlite3.Connection, person: int) -> None:
    """Give a person a new version."""
    db.execute("UPDATE people SET version = ? WHERE id = ?", (take(db), person))


def moved(db: sqlite3.Connection, person: int, thread: int) -> None:
    """Give a person a new version and epoch: the turns of a thread go or come."""
    number = take(db)
    db.execute("UPDATE people SET version = ?, epoch = ? WHERE id = ?", (number, number, person))
    sqlite_parts.drop_around(db, person, thread)


def drop_thread(db: sqlite3.Connection, thread: int) -> Removed:
    """Remove a thread with its turns and their vectors."""
    vectors = db.execute(
        "DELETE FROM vectors WHERE id IN (SELECT id FROM turns WHERE thread = ?)", (thread,)
    ).rowcount
    turns = db.execute("DELETE FROM turns WHERE thread = ?", (thread,)).rowcount
    db.execute("DELETE FROM threads WHERE id = ?", (thread,))
    return Removed(threads=1, turns=turns, vectors=vectors)


def count(db: sqlite3.Connection, person: int) -> Removed:
    """How much there is of a person."""
    counts = [
        db.execute(f"SELECT count(*) FROM {table} WHERE person = ?", (person,)).fetchone()[0]  # noqa: S608 - names of tables
        for table in ("threads", "turns", "facts", "vectors")
    ]
    return Removed(*counts)


def drop_person(db: sqlite3.Connection, person: int) -> None:
    """Remove everything of a person, and the name."""
    db.execute(
        "DELETE FROM earlier WHERE fact IN (SELECT key FROM facts WHERE person = ?)", (person,)
    )
    for table in ("parts", "vectors", "turns", "threads", "facts"):
        db.execute(f"DELETE FROM {table} WHERE person = ?", (person,))  # noqa: S608 - names of tables
    db.execute("DELETE FROM people WHERE id = ?", (person,))


def _know_agent(db: sqlite3.Connection, service: str, agent: str) -> int:
    known = find_agent(db, service, agent)
    if known is not None:
        return known
    added = db.execute(
        "INSERT INTO agents (service, name) VALUES (?, ?)", (encode_key(service), encode_key(agent))
    )
    return int(added.lastrowid or 0)


def _know_user(db: sqlite3.Connection, agent: int, user: bytes) -> int:
    found = db.execute(
        "SELECT id FROM people WHERE agent = ? AND name = ?", (agent, user)
    ).fetchone()
    if found is not None:
        return int(found[0])
    number = take(db)
    added = db.execute(
        "INSERT INTO people (agent, name, version, epoch) VALUES (?, ?, ?, ?)",
        (agent, user, number, number),
    )
    return int(added.lastrowid or 0)


def _create(db: sqlite3.Connection, place: Place, now: float) -> ThreadRow:
    agent = _know_agent(db, place.service, place.agent)
    user, name = encode_key(place.user), encode_key(place.thread)
    person = _know_user(db, agent, user)
    added = db.execute(
        "INSERT INTO threads (agent, name, person, title, turns, version, created, active, stamp)"
        " VALUES (?, ?, ?, x'', 0, 0, ?, ?, 0)",
        (agent, name, person, now, now),
    )
    return ThreadRow(int(added.lastrowid or 0), agent, person, user, b"", 0, 0, now, now, 0, name)


def _attribute(db: sqlite3.Connection, row: ThreadRow, user: str) -> ThreadRow:
    """Make nobody's thread somebody's, with the turns it has."""
    name = encode_key(user)
    person = _know_user(db, row.agent, name)
    db.execute("UPDATE threads SET person = ? WHERE id = ?", (person, row.id))
    db.execute("UPDATE turns SET person = ? WHERE thread = ?", (person, row.id))
    db.execute(
        "UPDATE vectors SET person = ? WHERE id IN (SELECT id FROM turns WHERE thread = ?)",
        (person, row.id),
    )
    moved(db, row.person, row.id)
    moved(db, person, row.id)
    return row._replace(person=person, user=name)
