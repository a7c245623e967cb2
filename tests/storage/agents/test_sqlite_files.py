"""What is removed from the record is in none of the files of a SQLite store."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from flowrt.errors import StoreUnavailable
from flowrt.storage import sqlite_file
from flowrt.storage.agents.protocol import NewTurn, Person, Place, Removed
from flowrt.storage.sqlite import SqliteStore
from flowrt.testing.agent_memory_conformance.ids import fill
from flowrt.testing.agent_memory_conformance.suite import said
from flowrt.testing.store_conformance.suite import opened

WORD = "Zwetschgenknödel"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def raw(path: Path) -> bytes:
    """All bytes of all files beside the store's."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(path.name + "*")))


def holds(path: Path, word: str = WORD) -> bool:
    """Whether a word is in the files, as it is written or as JSON writes it."""
    data = raw(path)
    return word.encode() in data or ascii(word)[1:-1].encode() in data


async def forget(store: SqliteStore) -> None:
    await store.agents().forget_user("s", WORD)


async def delete_thread_and_fact(store: SqliteStore) -> None:
    await store.agents().delete_thread(Place("s", "a", WORD))
    await store.agents().delete_fact(Person("s", "a", WORD), WORD)
    # The name is kept with what else there is of a person; there is nothing else here.
    await forget(store)


@pytest.mark.parametrize("remove", [forget, delete_thread_and_fact])
async def test_what_is_forgotten_is_in_no_file(
    path: Path, remove: Callable[[SqliteStore], Awaitable[None]]
) -> None:
    async with opened(SqliteStore(path)) as store:
        agents = store.agents()
        await fill(agents, Place("s", "a", "kept", "other"), "Powidl")
        await fill(agents, Place("s", "a", WORD, WORD), WORD)
        attrs = {"note": f"about {WORD}"}
        turns = [NewTurn("user", WORD * 1000, 1, attrs), NewTurn("assistant", f"a {WORD}")]
        await agents.append_turns(Place("s", "a", WORD, WORD), turns)
        await agents.set_title(Place("s", "a", WORD), f"{WORD}!")
        assert holds(path)
        await remove(store)
        assert not holds(path)
        assert holds(path, "Powidl")
    assert not holds(path)


async def test_deleting_a_fact_removes_its_values_from_the_files(path: Path) -> None:
    async with opened(SqliteStore(path)) as store:
        agents, person = store.agents(), Person("s", "a", "u")
        await agents.put_fact(person, "n", f"{WORD} old", expect=0, thread=f"{WORD} thread")
        await agents.put_fact(person, "n", f"{WORD} new", expect=1)
        await agents.put_fact(person, "other", "Powidl", expect=0)
        assert holds(path)
        await agents.delete_fact(person, "n")
        assert not holds(path)
        assert holds(path, "Powidl")


async def test_the_working_context_that_was_removed_before_is_gone_too(path: Path) -> None:
    async with opened(SqliteStore(path)) as store:
        entries = [f"{WORD} {at}".encode() for at in range(1000)]
        await store.append("s/user", "agents/a/t", entries, head={"last": WORD})
        await store.set("s/user", "k", WORD * 1000)
        await store.delete("s/user", "agents/a/t")
        await store.delete("s/user", "k")
        await forget(store)
        assert not holds(path)


@pytest.mark.parametrize("seed", range(3))
async def test_no_copy_that_sqlite_made_on_the_way_outlives_a_thread(path: Path, seed: int) -> None:
    """With `secure_delete` alone, one deletion in thirty left a row behind where pages merged."""
    dice = random.Random(seed)
    marks: dict[int, list[str]] = {}
    async with opened(SqliteStore(path)) as store:
        agents = store.agents()
        for step in range(400):
            number = dice.randrange(12)
            place = Place("s", "a", f"t{number}", f"u{number % 4}")
            if dice.random() < 0.97:
                mark = f"mark-{number}-{step:05}"
                marks.setdefault(number, []).append(mark)
                size = dice.choice([5, 40, 300, 900, 3000])
                await agents.append_turns(place, said(f"{mark} {'x' * size}"))
                await agents.put_fact(
                    Person("s", "a", f"u{number % 4}"), f"n{step % 7}", "y" * size, expect=None
                )
                continue
            await agents.delete_thread(place)
            files = raw(path)
            assert [] == [mark for mark in marks.pop(number, []) if mark.encode() in files]


async def test_a_process_that_dies_between_removal_and_scrub_leaves_it_to_the_next(
    path: Path,
) -> None:
    program = f"""
import asyncio, os
from flowrt.storage import sqlite_file
from flowrt.storage.agents.protocol import NewTurn, Place
from flowrt.storage.sqlite import SqliteStore

async def main():
    store = SqliteStore({str(path)!r})
    await store.open()
    await store.agents().append_turns(Place("s", "a", "t", "u"), [NewTurn("user", {WORD!r})])
    sqlite_file.SqliteFile.scrub = lambda *_: os._exit(9)
    await store.agents().forget_user("s", "u")

asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert 9 == ended.returncode
    assert holds(path)
    async with opened(SqliteStore(path)) as store:
        assert not holds(path)
        assert await store.agents().thread(Place("s", "a", "t")) is None


async def test_a_reader_that_stays_is_named_and_the_next_attempt_scrubs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
    async with opened(SqliteStore(path)) as store:
        await fill(store.agents(), Place("s", "a", "t", WORD), WORD)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM turns").fetchone()
            with pytest.raises(StoreUnavailable, match=r"state\.db-wal.*once more"):
                await forget(store)
        assert await store.agents().thread(Place("s", "a", "t")) is None
        assert Removed() == await store.agents().forget_user("s", WORD)
        assert not holds(path)


async def test_removing_nothing_rewrites_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scrubs: list[object] = []
    monkeypatch.setattr(sqlite_file.SqliteFile, "scrub", lambda *_: scrubs.append(1))
    async with opened(SqliteStore(path)) as store:
        await fill(store.agents(), Place("s", "a", "t", "u"), "word")
        await store.agents().delete_thread(Place("s", "a", "other"))
        await store.agents().delete_thread(Place("s", "a", "t", "v"))
        await store.agents().delete_fact(Person("s", "a", "u"), "other")
        await store.agents().forget_user("s", "u", dry_run=True)
        assert [] == scrubs
        await store.agents().forget_user("s", "u")
        assert [1] == scrubs


async def test_the_listings_are_ranges_of_an_index(path: Path) -> None:
    """A plan that scans a table or sorts would grow with what others have stored."""
    plans: list[str] = []
    async with opened(SqliteStore(path)) as store:
        agents, person = store.agents(), Person("s", "a", "u")
        await fill(agents, Place("s", "a", "t", "u"), "word")
        statements: list[str] = []
        await store._read(lambda db: db.set_trace_callback(statements.append))
        await agents.threads("s", "a")
        await agents.threads("s", "a", user="u", after="99")
        await agents.facts(person)
        await agents.fact(person, "word")
        await agents.turns(Place("s", "a", "t", "u"), newest_first=True)
        await agents.turns(Place("s", "a", "t"), after=1)
        await agents.turns_of(person, after=1)
        await agents.vectors_of(person)
        await agents.version(person)
        await agents.users("s", "a")
        await agents.agents("s")
        await store._read(lambda db: db.set_trace_callback(None))
        for statement in statements:
            if statement.startswith("SELECT"):
                rows = await store._read(
                    lambda db, s=statement: db.execute(f"EXPLAIN QUERY PLAN {s}").fetchall()  # type: ignore[misc]
                )
                plans += [row[3] for row in rows]
    assert plans
    assert [] == [plan for plan in plans if plan.startswith("SCAN") or "TEMP B-TREE" in plan]


async def test_stores_that_forget_at_once_do_not_fail_each_other(path: Path) -> None:
    """SQLite does not wait for another connection's checkpoint, only for its readers."""
    first, second, third = SqliteStore(path), SqliteStore(path), SqliteStore(path)
    async with opened(first), opened(second), opened(third):
        for number in range(15):
            stores = (first, second, third)
            for index, store in enumerate(stores):
                await store.agents().append_turns(
                    Place("s", "a", f"t{index}", f"u{index}"), said("x")
                )
            removed = await asyncio.gather(
                *(
                    store.agents().forget_user("s", f"u{index}")
                    for index, store in enumerate(stores)
                )
            )
            assert [1, 1, 1] == [each.turns for each in removed], number
