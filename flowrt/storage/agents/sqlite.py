"""The record of agents in a SQLite file, beside the keys of a `SqliteStore`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from flowrt.errors import VersionConflict
from flowrt.storage.agents import sqlite_facts, sqlite_parts, sqlite_rows
from flowrt.storage.agents.protocol import (
    Fact,
    IndexPart,
    NewTurn,
    Page,
    Person,
    Place,
    Removed,
    ThreadInfo,
    Turn,
    Vector,
)
from flowrt.storage.agents.rules import check_fact_owner, check_forgotten, check_vectors
from flowrt.storage.encoding import JSON, decode_key, decode_value, encode_json, encode_key

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")
NEWEST = 2**63 - 1
"""Above every number that a row has."""

_ROLES: Sequence[Any] = ("user", "assistant")
_KINDS: Sequence[Any] = ("turn", "fact")
_TURN = (
    "SELECT turns.id, threads.name, people.name, turns.seq, turns.role, turns.text, turns.tokens,"
    " turns.attrs, turns.at FROM turns JOIN threads ON threads.id = turns.thread"
    " JOIN people ON people.id = turns.person"
)
_HAS_ANYTHING = (
    "(EXISTS (SELECT 1 FROM threads WHERE threads.person = people.id)"
    " OR EXISTS (SELECT 1 FROM facts WHERE facts.person = people.id))"
)
_AGENTS = (
    f"SELECT name FROM agents WHERE service = ? AND EXISTS"  # noqa: S608 - a constant
    f" (SELECT 1 FROM people WHERE people.agent = agents.id AND {_HAS_ANYTHING}) ORDER BY name"
)
_USERS = (
    f"SELECT name FROM people WHERE agent = ? AND name != x'' AND {_HAS_ANYTHING} ORDER BY name"  # noqa: S608 - a constant
)
_ADD_TURN = (
    "INSERT INTO turns (id, thread, seq, person, role, tokens, at, text, attrs)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# Nothing where the turn or the fact is gone, or is another person's.
_PUT_VECTOR = {
    kind: "INSERT OR REPLACE INTO vectors (id, person, kind, model, data)"  # noqa: S608 - a constant
    f" SELECT id, person, {number}, ?, ? FROM {kind}s WHERE id = ? AND person = ?"
    for number, kind in enumerate(_KINDS)
}


class Run(Protocol):
    """Runs work on a connection of the store; with `scrub`, its files hold no more than it does."""

    async def __call__(
        self, work: Callable[[sqlite3.Connection], T], *, scrub: bool = False
    ) -> T: ...


class SqliteAgentStore:
    """Keeps the record in the tables of `sqlite_schema`, on the connections of its store.

    What is removed is not in the files any more when a call returns: that costs a rewrite of the
    whole file, 8 ms for each of its megabytes.
    """

    def __init__(self, read: Run, write: Run, now: Callable[[], float]) -> None:
        self._read = read
        self._write = write
        self._now = now

    def dated(self, now: Callable[[], float]) -> SqliteAgentStore:
        """See `flowrt.storage.agents.protocol.Dated`."""
        return SqliteAgentStore(self._read, self._write, now)

    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        new = [
            (turn, encode_key(turn.text), encode_json(turn.attrs) if turn.attrs else None)
            for turn in turns
        ]
        if not new:
            return []
        now = self._now()

        def write(db: sqlite3.Connection) -> list[Turn]:
            row = sqlite_rows.work_on(db, place, now)
            first = sqlite_rows.take(db, len(new))
            user = decode_key(row.user)
            added = []
            for at, (turn, text, attrs) in enumerate(new):
                number, seq, role = first + at, row.turns + at + 1, _ROLES.index(turn.role)
                where = (number, row.id, seq, row.person)
                db.execute(_ADD_TURN, (*where, role, turn.tokens, now, text, attrs))
                said = (turn.role, turn.text, turn.tokens, _attrs(attrs), now)
                added.append(Turn(number, place.thread, user, seq, *said))
            db.execute("UPDATE threads SET turns = turns + ? WHERE id = ?", (len(new), row.id))
            sqlite_rows.changed(db, row.person)
            return added

        return await self._write(write)

    async def touch(self, place: Place) -> ThreadInfo:
        now = self._now()
        return await self._write(lambda db: sqlite_rows.work_on(db, place, now).info(place.agent))

    async def turns(
        self, place: Place, *, after: int = 0, limit: int = 500, newest_first: bool = False
    ) -> Page[Turn]:
        where, order = ("<", "DESC") if newest_first else (">", "ASC")
        behind = after or NEWEST if newest_first else after

        def read(db: sqlite3.Connection) -> Page[Turn]:
            row = sqlite_rows.find_thread(db, place)
            if row is None:
                return Page([], None)
            found = db.execute(
                f"{_TURN} WHERE turns.thread = ? AND turns.seq {where} ?"
                f" ORDER BY turns.seq {order} LIMIT ?",
                (row.id, behind, limit + 1),
            )
            turns = [_turn(row) for row in found]
            return _page(turns, limit, lambda turn: turn.seq)

        return await self._read(read)

    async def turns_of(self, person: Person, *, after: int = 0, limit: int = 5000) -> Page[Turn]:
        def read(db: sqlite3.Connection) -> Page[Turn]:
            found = db.execute(
                f"{_TURN} WHERE turns.person = ? AND turns.id > ? ORDER BY turns.id LIMIT ?",
                (sqlite_rows.find_person(db, person), after, limit + 1),
            )
            turns = [_turn(row) for row in found]
            return _page(turns, limit, lambda turn: turn.id)

        return await self._read(read)

    async def thread(self, place: Place) -> ThreadInfo | None:
        def read(db: sqlite3.Connection) -> ThreadInfo | None:
            row = sqlite_rows.find_thread(db, place)
            return None if row is None else row.info(place.agent)

        return await self._read(read)

    async def threads(
        self,
        service: str,
        agent: str,
        *,
        user: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[ThreadInfo]:
        before = NEWEST if after is None else int(after)

        def read(db: sqlite3.Connection) -> Page[ThreadInfo]:
            number = sqlite_rows.find_agent(db, service, agent)
            if number is None:
                return Page([], None)
            rows = sqlite_rows.list_threads(db, number, user, before, limit + 1)
            page = _page(rows, limit, lambda row: row.stamp)
            return Page([row.info(agent) for row in page.items], page.after)

        return await self._read(read)

    async def agents(self, service: str) -> list[str]:
        def read(db: sqlite3.Connection) -> list[str]:
            found = db.execute(_AGENTS, (encode_key(service),))
            return [decode_key(name) for (name,) in found]

        return await self._read(read)

    async def users(self, service: str, agent: str) -> list[str]:
        def read(db: sqlite3.Connection) -> list[str]:
            found = db.execute(_USERS, (sqlite_rows.find_agent(db, service, agent),))
            return [decode_key(name) for (name,) in found]

        return await self._read(read)

    async def set_title(self, place: Place, title: str) -> None:
        def write(db: sqlite3.Connection) -> None:
            row = sqlite_rows.find_thread(db, place)
            if row is not None:
                db.execute(
                    "UPDATE threads SET title = ?, version = version + 1 WHERE id = ?",
                    (encode_key(title), row.id),
                )

        await self._write(write)

    async def delete_thread(self, place: Place) -> Removed:
        def write(db: sqlite3.Connection) -> Removed:
            row = sqlite_rows.find_thread(db, place)
            if row is None:
                return Removed()
            sqlite_rows.moved(db, row.person, row.id)
            return sqlite_rows.drop_thread(db, row.id)

        # Asked before: where there is nothing to remove, nothing is rewritten.
        if await self.thread(place) is None:
            return Removed()
        return await self._write(write, scrub=True)

    async def facts(
        self, person: Person, *, after: str | None = None, limit: int = 100
    ) -> Page[Fact]:
        before = NEWEST if after is None else int(after)

        def read(db: sqlite3.Connection) -> Page[Fact]:
            number = sqlite_rows.find_person(db, person)
            rows = sqlite_facts.list_facts(db, number, before, limit + 1)
            page = _page(rows, limit, lambda row: row.id)
            return Page([row.fact() for row in page.items], page.after)

        return await self._read(read)

    async def fact(self, person: Person, name: str) -> Fact | None:
        def read(db: sqlite3.Connection) -> Fact | None:
            row = sqlite_facts.find_fact(db, sqlite_rows.find_person(db, person), name)
            return None if row is None else row.fact(sqlite_facts.earlier(db, row.key))

        return await self._read(read)

    async def put_fact(
        self,
        person: Person,
        name: str,
        value: str,
        *,
        expect: int | None,
        thread: str = "",
        seq: int = 0,
    ) -> Fact:
        check_fact_owner(person)

        def write(db: sqlite3.Connection) -> Fact:
            before = sqlite_facts.find_fact(db, sqlite_rows.find_person(db, person), name)
            actual = before.version if before else 0
            if expect is not None and expect != actual:
                raise VersionConflict(name, expect, actual)
            if before is None or before.value != encode_key(value):
                number = sqlite_rows.know(db, person)
                new = sqlite_facts.Value(encode_key(value), encode_key(thread), seq, self._now())
                before = sqlite_facts.put(db, number, name, before, new)
                sqlite_rows.changed(db, number)
            return before.fact()

        return await self._write(write)

    async def delete_fact(self, person: Person, name: str) -> bool:
        def write(db: sqlite3.Connection) -> bool:
            number = sqlite_rows.find_person(db, person)
            row = sqlite_facts.find_fact(db, number, name)
            if number is None or row is None:
                return False
            sqlite_facts.drop(db, row)
            sqlite_rows.changed(db, number)
            return True

        if await self.fact(person, name) is None:
            return False
        return await self._write(write, scrub=True)

    async def put_vectors(self, person: Person, vectors: Sequence[Vector]) -> None:
        check_vectors(vectors)

        def write(db: sqlite3.Connection) -> None:
            number, kept = sqlite_rows.find_person(db, person), 0
            for vector in vectors:
                values = (encode_key(vector.model), vector.data, vector.id, number)
                kept += db.execute(_PUT_VECTOR[vector.kind], values).rowcount
            if number is not None and kept:
                sqlite_rows.changed(db, number)

        await self._write(write)

    async def vectors_of(
        self, person: Person, *, after: str | None = None, limit: int = 5000
    ) -> Page[Vector]:
        behind = 0 if after is None else int(after)

        def read(db: sqlite3.Connection) -> Page[Vector]:
            found = db.execute(
                "SELECT kind, id, model, data FROM vectors WHERE person = ? AND id > ?"
                " ORDER BY id LIMIT ?",
                (sqlite_rows.find_person(db, person), behind, limit + 1),
            )
            vectors = [
                Vector(_KINDS[kind], number, decode_key(model), data)
                for kind, number, model, data in found
            ]
            return _page(vectors, limit, lambda vector: vector.id)

        return await self._read(read)

    async def forget_user(
        self, service: str, user: str, *, agent: str | None = None, dry_run: bool = False
    ) -> Removed:
        check_forgotten(user)

        def work(db: sqlite3.Connection) -> Removed:
            gone = Removed()
            for person in sqlite_rows.same_user(db, service, user, agent):
                gone += sqlite_rows.count(db, person)
                if not dry_run:
                    sqlite_rows.drop_person(db, person)
            return gone

        if dry_run:
            return await self._read(work)
        # Also where nothing is left of them: a crash may have come between removal and scrub.
        return await self._write(work, scrub=True)

    async def version(self, person: Person) -> int:
        def read(db: sqlite3.Connection) -> int:
            return sqlite_rows.version(db, person)

        return await self._read(read)

    async def epoch(self, person: Person) -> int:
        def read(db: sqlite3.Connection) -> int:
            return sqlite_parts.epoch(db, sqlite_rows.find_person(db, person))

        return await self._read(read)

    async def put_part(self, person: Person, part: IndexPart, *, epoch: int) -> bool:
        def write(db: sqlite3.Connection) -> bool:
            return sqlite_parts.put(db, sqlite_rows.find_person(db, person), part, epoch)

        return await self._write(write)

    async def parts(self, person: Person, *, after: int = 0, limit: int = 16) -> Page[IndexPart]:
        def read(db: sqlite3.Connection) -> Page[IndexPart]:
            number = sqlite_rows.find_person(db, person)
            found = sqlite_parts.list_parts(db, number, after, limit + 1)
            return _page(found, limit, lambda part: part.first)

        return await self._read(read)


def _attrs(data: bytes | None) -> dict[str, Any]:
    attrs: dict[str, Any] = {} if data is None else decode_value(JSON, data)
    return attrs


def _turn(row: tuple[Any, ...]) -> Turn:
    number, thread, user, seq, role, text, tokens, attrs, at = row
    place = decode_key(thread), decode_key(user)
    return Turn(number, *place, seq, _ROLES[role], decode_key(text), tokens, _attrs(attrs), at)


def _page(found: list[T], limit: int, number: Callable[[T], int]) -> Page[T]:
    """A page of at most `limit`; one more was looked for, to know whether there are more."""
    more = len(found) > limit
    return Page(found[:limit], str(number(found[limit - 1])) if more else None)
