"""The record of agents in Redis or Valkey (6.2 and newer), beside the keys of a `RedisStore`.

What is where, and which scripts work on it: `flowrt.storage.agents.redis_scripts`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

from flowrt.errors import VersionConflict
from flowrt.storage.agents import redis_scripts as scripts
from flowrt.storage.agents.protocol import (
    Earlier,
    Fact,
    IndexPart,
    NewTurn,
    Page,
    Person,
    Place,
    Removed,
    Role,
    ThreadInfo,
    Turn,
    Vector,
)
from flowrt.storage.agents.rules import check_fact_owner, check_forgotten, check_vectors
from flowrt.storage.encoding import decode_key, encode_json, encode_key

T = TypeVar("T")

_COUNT_BITS = 40
"""A change and a count are one number: the count is in the lower bits."""


class RunScript(Protocol):
    """Runs a script by name; `again` where it may be sent twice if the connection broke."""

    def __call__(
        self, name: str, keys: list[bytes], arguments: list[Any], *, again: bool = True
    ) -> Awaitable[Any]: ...


class RedisAgentStore:
    """Keeps the record under keys that start with ``flowrt:{agents}:``, of all services.

    Every method is one script. A write whose answer was lost is reported and not sent again: a
    turn would be recorded twice.
    """

    def __init__(
        self,
        script: RunScript,
        rewrite_file: Callable[[], Awaitable[None]],
        now: Callable[[], float] | None = None,
    ) -> None:
        self._script = script
        self._rewrite_file = rewrite_file
        self._now = now

    def dated(self, now: Callable[[], float]) -> RedisAgentStore:
        """See `flowrt.storage.agents.protocol.Dated`; else the server's clock is asked."""
        return RedisAgentStore(self._script, self._rewrite_file, now)

    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        said = [_encode_turn(turn) for turn in turns]
        if not said:
            return []
        thread = encode_key(place.thread)
        user, first, seq, at = await self._write("append", _person(place), thread, *said)
        return [
            _turn(place.thread, user, seq + n, b"%d %s %s" % (first + n, at, text))
            for n, text in enumerate(said)
        ]

    async def touch(self, place: Place) -> ThreadInfo:
        row = await self._write("touch", _person(place), encode_key(place.thread))
        return _thread(place.agent, row)

    async def turns(
        self, place: Place, *, after: int = 0, limit: int = 500, newest_first: bool = False
    ) -> Page[Turn]:
        thread, order = encode_key(place.thread), int(newest_first)
        found = await self._list("turns", _person(place), thread, after, limit, order)
        if not found:
            return Page([], None)
        user, first, more, *said = found
        items = [_turn(place.thread, user, int(first) + n, text) for n, text in enumerate(said)]
        if newest_first:
            items.reverse()
        return Page(items, str(items[-1].seq) if more == b"1" else None)

    async def turns_of(self, person: Person, *, after: int = 0, limit: int = 5000) -> Page[Turn]:
        user, turns = _escape(person.user), list[Turn]()
        for run in await self._list("turns_of", person, after, limit + 1):
            thread, first, *said = _unpack(run)
            name, seq = decode_key(thread), int(first)
            turns += [_turn(name, user, seq + n, text) for n, text in enumerate(said)]
        return _page(turns, limit, lambda turn: turn.id)

    async def thread(self, place: Place) -> ThreadInfo | None:
        row = await self._read("thread", _person(place), encode_key(place.thread))
        return None if row is None else _thread(place.agent, row)

    async def threads(
        self,
        service: str,
        agent: str,
        *,
        user: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[ThreadInfo]:
        person = Person(service, agent, user or "")
        arguments = (int(user is not None), _before(after), limit + 1)
        rows = await self._list("threads", person, *arguments)
        page = _page(rows, limit, lambda row: int(_unpack(row)[-1]))
        return Page([_thread(agent, row) for row in page.items], page.after)

    async def agents(self, service: str) -> list[str]:
        return _names(await self._list("agents", Person(service, "", "")))

    async def users(self, service: str, agent: str) -> list[str]:
        names = _names(await self._list("users", Person(service, agent, "")))
        return [name for name in names if name]

    async def set_title(self, place: Place, title: str) -> None:
        thread = encode_key(place.thread)
        await self._write("set_title", _person(place), thread, encode_key(title))

    async def delete_thread(self, place: Place) -> Removed:
        gone = await self._write("delete_thread", _person(place), encode_key(place.thread))
        return Removed(threads=gone[0], turns=gone[1], vectors=gone[2])

    async def facts(
        self, person: Person, *, after: str | None = None, limit: int = 100
    ) -> Page[Fact]:
        rows = await self._list("facts", person, _before(after), limit + 1)
        return _page([_fact(row) for row in rows], limit, lambda fact: fact.id)

    async def fact(self, person: Person, name: str) -> Fact | None:
        found = await self._read("fact", person, encode_key(name))
        return None if found is None else _fact(*_unpack(found))

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
        source = encode_json([thread, seq])
        expected = "" if expect is None else expect
        arguments = (encode_key(name), encode_key(value), source, expected)
        found = await self._write("put_fact", person, *arguments)
        if isinstance(found, int):
            raise VersionConflict(name, expect or 0, found)
        return _fact(found)

    async def delete_fact(self, person: Person, name: str) -> bool:
        return bool(await self._write("delete_fact", person, encode_key(name)))

    async def put_vectors(self, person: Person, vectors: Sequence[Vector]) -> None:
        check_vectors(vectors)
        rows: list[str | int | bytes] = []
        for vector in vectors:
            rows += [vector.kind, vector.id, encode_json(vector.model) + b"\n" + vector.data]
        await self._write("put_vectors", person, *rows)

    async def vectors_of(
        self, person: Person, *, after: str | None = None, limit: int = 5000
    ) -> Page[Vector]:
        found = await self._list("vectors_of", person, int(after or 0), limit + 1)
        vectors = [_vector(*pair) for pair in zip(found[::2], found[1::2], strict=True)]
        return _page(vectors, limit, lambda vector: vector.id)

    async def forget_user(
        self, service: str, user: str, *, agent: str | None = None, dry_run: bool = False
    ) -> Removed:
        """As in the protocol; an append-only file is then rewritten, by the server in its own time.

        A snapshot is replaced by the next one, a backup by nobody.
        """
        check_forgotten(user)
        person = Person(service, agent or "", user)
        gone = Removed(*await self._write("forget", person, int(agent is None), int(dry_run)))
        if not dry_run:
            await self._rewrite_file()
        return gone

    async def version(self, person: Person) -> int:
        change, count = await self._read("version", person)
        return int(change) << _COUNT_BITS | int(count)

    async def epoch(self, person: Person) -> int:
        change, count = (await self._read("epoch", person)).split(b":")
        return int(change) << _COUNT_BITS | int(count)

    async def put_part(self, person: Person, part: IndexPart, *, epoch: int) -> bool:
        made_in = f"{epoch >> _COUNT_BITS}:{epoch & (1 << _COUNT_BITS) - 1}"
        where = (made_in, part.first, part.last)
        return bool(await self._write("put_part", person, *where, part.data))

    async def parts(self, person: Person, *, after: int = 0, limit: int = 16) -> Page[IndexPart]:
        found = await self._list("parts", person, after, limit + 1)
        rows = zip(found[::3], found[1::3], found[2::3], strict=True)
        parts = [IndexPart(int(first), int(last), data) for first, last, data in rows]
        return _page(parts, limit, lambda part: part.first)

    async def _list(self, name: str, person: Person, *arguments: Any) -> list[bytes]:
        return _unpack(await self._read(name, person, *arguments))

    async def _read(self, name: str, person: Person, *arguments: Any) -> Any:
        return await self._run(name, person, arguments, again=True)

    async def _write(self, name: str, person: Person, *arguments: Any) -> Any:
        if self._now is not None and name in scripts.DATED:
            name, arguments = f"dated.{name}", (*arguments, repr(self._now()))
        return await self._run(name, person, arguments, again=False)

    async def _run(
        self, name: str, person: Person, arguments: tuple[Any, ...], *, again: bool
    ) -> Any:
        address = [_escape(part) for part in person]
        return await self._script(
            f"agents.{name}", [scripts.COUNTER], [*address, *arguments], again=again
        )


def _person(place: Place) -> Person:
    return Person(place.service, place.agent, place.user)


def _escape(part: str) -> bytes:
    """An id as a part of a key."""
    return encode_key(part).replace(b"%", b"%25").replace(b":", b"%3A")


def _unescape(part: bytes) -> str:
    return decode_key(part.replace(b"%3A", b":").replace(b"%25", b"%"))


def _names(parts: list[bytes]) -> list[str]:
    return sorted(_unescape(part) for part in parts)


def _before(after: str | None) -> str:
    return "+inf" if after is None else f"({int(after)}"


def _page(found: list[T], limit: int, place: Callable[[T], int]) -> Page[T]:
    """A page of at most `limit`; one more was looked for, to know whether there are more."""
    return Page(found[:limit], str(place(found[limit - 1])) if len(found) > limit else None)


def _unpack(values: bytes) -> list[bytes]:
    """What a script packed: each value behind its length and a colon."""
    found, at = list[bytes](), 0
    while at < len(values):
        start = values.index(b":", at) + 1
        at = start + int(values[at : start - 1])
        found.append(values[start:at])
    return found


def _encode_turn(turn: NewTurn) -> bytes:
    """A line of what is known of the text, then the text as it is.

    Compact ASCII JSON has no line break in it, and may therefore be in the line.
    """
    known = b"%s %d %s" % (turn.role.encode(), turn.tokens, encode_json(turn.attrs))
    return known + b"\n" + encode_key(turn.text)


def _turn(thread: str, user: bytes, seq: int, said: bytes) -> Turn:
    known, _, text = said.partition(b"\n")
    number, at, role, tokens, attrs = known.split(b" ", 4)
    return Turn(
        id=int(number),
        thread=thread,
        user=_unescape(user),
        seq=seq,
        role=cast(Role, role.decode()),
        text=decode_key(text),
        tokens=int(tokens),
        attrs=json.loads(attrs.decode()),
        at=float(at),
    )


def _thread(agent: str, row: bytes) -> ThreadInfo:
    thread, user, title, version, created, active, turns, *_ = _unpack(row)
    return ThreadInfo(
        agent=agent,
        thread=decode_key(thread),
        user=_unescape(user),
        title=decode_key(title),
        turns=int(turns),
        version=int(version),
        created=float(created),
        active=float(active),
    )


def _fact(row: bytes, *earlier: bytes) -> Fact:
    number, name, value, source, version, created, updated = _unpack(row)
    thread, seq = json.loads(source)
    return Fact(
        id=int(number),
        name=decode_key(name),
        value=decode_key(value),
        version=int(version),
        thread=thread,
        seq=seq,
        created=float(created),
        updated=float(updated),
        earlier=tuple(_earlier(was) for was in earlier),
    )


def _earlier(was: bytes) -> Earlier:
    known, _, value = was.partition(b"\n")
    version, at, source = known.split(b" ", 2)
    thread, seq = json.loads(source)
    return Earlier(decode_key(value), int(version), thread, seq, float(at))


def _vector(number: bytes, kept: bytes) -> Vector:
    known, _, data = kept.partition(b"\n")
    kind, _, model = known.partition(b" ")
    return Vector("turn" if kind == b"turn" else "fact", int(number), json.loads(model), data)
