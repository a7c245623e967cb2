"""Files that earlier versions left."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from flowrt.storage.agents.protocol import IndexPart, Person, Place
from flowrt.storage.protocol import Log, Stored
from flowrt.storage.sqlite import SqliteStore
from flowrt.testing.agent_memory_conformance.suite import said, vector
from flowrt.testing.store_conformance.suite import opened


def left(path: Path, dump: str) -> SqliteStore:
    """A store on a file as an earlier version left it; the dumps are never made anew."""
    db = sqlite3.connect(path)
    db.executescript(Path(__file__).with_name(dump).read_text(encoding="utf-8"))
    db.close()
    return SqliteStore(path)


async def test_a_file_of_the_first_schema_is_read_and_written(tmp_path: Path) -> None:
    async with opened(left(tmp_path / "state.db", "m001_initial.sql")) as store:
        assert Stored({"name": "Ada", "é": None}, 2) == await store.get("demo/user", "profile")
        assert Stored(b"\x00\xff", 1) == await store.get("demo/user", "bytes")
        log = Log({"tokens": 12}, [b"two", b"three"], 3, 2)
        assert log == await store.read_log("demo/user", "agent-memory/t")
        assert 4 == await store.append("demo/user", "agent-memory/t", [b"four"], expect=3)
        assert await store.get("demo/user", "over") is None


async def test_a_file_of_the_first_schema_takes_the_record_of_agents(tmp_path: Path) -> None:
    async with opened(left(tmp_path / "state.db", "m001_initial.sql")) as store:
        agents, place = store.agents(), Place("demo", "support", "t", "ada")
        assert [] == await agents.agents("demo")
        (turn,) = await agents.append_turns(place, said("hello"))
        assert [turn] == (await agents.turns(place)).items
        await agents.forget_user("demo", "ada")
        # The rewrite that forgetting is leaves what was there before.
        assert Stored(b"\x00\xff", 1) == await store.get("demo/user", "bytes")
        log = await store.read_log("demo/user", "agent-memory/t")
        assert log is not None
        assert ([b"two", b"three"], 3) == (log.entries, log.version)


async def test_a_file_of_the_second_schema_is_read_and_written(tmp_path: Path) -> None:
    async with opened(left(tmp_path / "state.db", "m002_agents.sql")) as store:
        agents, person = store.agents(), Person("demo", "support", "ada")
        one, two = (await agents.turns_of(person)).items
        assert ("Hallo é", "user", 1, {"stopReason": "end"}) == (
            one.text,
            one.role,
            one.seq,
            one.attrs,
        )
        assert ("Hi", "assistant", 2, {}) == (two.text, two.role, two.seq, two.attrs)
        info = await agents.thread(Place(*person[:2], "t", "ada"))
        assert info is not None
        assert ("Greeting", 2, 3) == (info.title, info.turns, info.version)
        fact = await agents.fact(person, "unit")
        assert fact is not None
        assert ("Kelvin", 2, "t", 2) == (fact.value, fact.version, fact.thread, fact.seq)
        assert ["Celsius"] == [earlier.value for earlier in fact.earlier]
        vectors = (await agents.vectors_of(person)).items
        assert [vector("turn", two.id, 1.0, 0.5), vector("fact", fact.id, 0.25)] == vectors
        (three,) = await agents.append_turns(Place(*person[:2], "t"), said("three"))
        assert (3, "ada") == (three.seq, three.user)
        assert three.id > fact.id


async def test_turns_of_the_second_schema_have_an_epoch(tmp_path: Path) -> None:
    async with opened(left(tmp_path / "state.db", "m002_agents.sql")) as store:
        agents, person = store.agents(), Person("demo", "support", "ada")
        epoch = await agents.epoch(person)
        assert epoch != 0
        part = IndexPart(1, 9, b"part")
        assert await agents.put_part(person, part, epoch=epoch)
        assert [part] == (await agents.parts(person)).items
        await agents.delete_thread(Place(*person[:2], "t"))
        assert epoch != await agents.epoch(person)
        assert [] == (await agents.parts(person)).items


async def test_a_file_of_the_third_schema_is_read_and_written(tmp_path: Path) -> None:
    async with opened(left(tmp_path / "state.db", "m003_parts.sql")) as store:
        agents, person = store.agents(), Person("demo", "support", "ada")
        (part,) = (await agents.parts(person)).items
        (turn,) = (await agents.turns_of(person)).items
        assert ("Hallo é", IndexPart(1, turn.id, b"\x00part\xff")) == (turn.text, part)
        await agents.append_turns(Place(*person[:2], "t"), said("two"))
        assert await agents.put_part(person, part, epoch=await agents.epoch(person))
