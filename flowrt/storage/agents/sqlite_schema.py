"""The tables of the record in a SQLite store.

Ids, names and texts are UTF-8 bytes: compared exactly, in code point order. Agents and people have
a number each, so that an id is written once, and a listing is one range of one index. The numbers
of turns and facts, the versions of people and the order of threads come from one counter, which
never gives a number twice; beside it stands whether the file has still to be scrubbed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

_TABLES = (
    "CREATE TABLE counter (last INTEGER NOT NULL, scrub INTEGER NOT NULL)",
    "INSERT INTO counter (last, scrub) VALUES (0, 0)",
    "CREATE TABLE agents ("
    " id INTEGER PRIMARY KEY, service BLOB NOT NULL, name BLOB NOT NULL, UNIQUE (service, name))",
    "CREATE TABLE people ("
    " id INTEGER PRIMARY KEY, agent INTEGER NOT NULL, name BLOB NOT NULL,"
    " version INTEGER NOT NULL, UNIQUE (agent, name))",
    "CREATE TABLE threads ("
    " id INTEGER PRIMARY KEY, agent INTEGER NOT NULL, name BLOB NOT NULL, person INTEGER NOT NULL,"
    " title BLOB NOT NULL, turns INTEGER NOT NULL, version INTEGER NOT NULL,"
    " created REAL NOT NULL, active REAL NOT NULL, stamp INTEGER NOT NULL, UNIQUE (agent, name))",
    "CREATE INDEX threads_of_agent ON threads (agent, stamp)",
    "CREATE INDEX threads_of_person ON threads (person, stamp)",
    "CREATE TABLE turns ("
    " id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " person INTEGER NOT NULL, role INTEGER NOT NULL, tokens INTEGER NOT NULL, at REAL NOT NULL,"
    " text BLOB NOT NULL, attrs BLOB)",
    "CREATE UNIQUE INDEX turns_of_thread ON turns (thread, seq)",
    "CREATE INDEX turns_of_person ON turns (person)",
    "CREATE TABLE facts ("
    " key INTEGER PRIMARY KEY, id INTEGER NOT NULL, person INTEGER NOT NULL, name BLOB NOT NULL,"
    " value BLOB NOT NULL, version INTEGER NOT NULL, thread BLOB NOT NULL, seq INTEGER NOT NULL,"
    " created REAL NOT NULL, updated REAL NOT NULL, UNIQUE (person, name))",
    "CREATE INDEX facts_of_person ON facts (person, id)",
    "CREATE TABLE earlier ("
    " fact INTEGER NOT NULL, version INTEGER NOT NULL, value BLOB NOT NULL, thread BLOB NOT NULL,"
    " seq INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (fact, version)) WITHOUT ROWID",
    "CREATE TABLE vectors ("
    " id INTEGER PRIMARY KEY, person INTEGER NOT NULL, kind INTEGER NOT NULL, model BLOB NOT NULL,"
    " data BLOB NOT NULL)",
    "CREATE INDEX vectors_of_person ON vectors (person)",
)


_PARTS = (
    # Numbers of one counter, so a version will do for the first epoch.
    "ALTER TABLE people ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0",
    "UPDATE people SET epoch = version",
    "CREATE TABLE parts ("
    " person INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, data BLOB NOT NULL,"
    " PRIMARY KEY (person, first))",
)


def m002_agents(db: sqlite3.Connection) -> None:
    """Agents, people, threads, turns, facts and vectors."""
    for statement in _TABLES:
        db.execute(statement)


def m003_parts(db: sqlite3.Connection) -> None:
    """Parts of the indexes that searches make, and the epochs that they are valid in."""
    for statement in _PARTS:
        db.execute(statement)
