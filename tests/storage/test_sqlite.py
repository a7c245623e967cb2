"""The store in a SQLite file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from flowrt.errors import StoreError, StoreUnavailable
from flowrt.storage.protocol import KeyValue, Lease, Stored
from flowrt.storage.sqlite import SqliteStore
from flowrt.storage.sqlite_schema import MIGRATIONS
from flowrt.testing.store_conformance import StoreConformance
from flowrt.testing.store_conformance.suite import opened
from tests.storage.hands import HandClock


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> KeyValue:
        self.clock = HandClock()
        self.path = tmp_path / "state.db"
        return SqliteStore(self.path, clock=self.clock)

    def another(self, store: KeyValue) -> KeyValue:
        return SqliteStore(self.path, clock=self.clock)

    async def advance(self, store: KeyValue, seconds: float) -> None:
        self.clock.advance(seconds)

    async def take_away(self, store: KeyValue, lease: Lease) -> None:
        self.path.with_name("state.db.lock").unlink()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


async def test_all_files_and_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a" / "b" / "state.db")
    async with opened(store):
        await store.set("s", "k", 1)
        assert await store.try_lease("s", "k", ttl=1)
        modes = {item.name: item.stat().st_mode & 0o777 for item in store.path.parent.iterdir()}
        files = ["state.db", "state.db-shm", "state.db-wal", "state.db.lock"]
        assert dict.fromkeys(files, 0o600) == modes
    for folder in (tmp_path / "a", tmp_path / "a" / "b"):
        assert 0o700 == folder.stat().st_mode & 0o777


async def test_closing_leaves_one_file_with_everything_in_it(path: Path) -> None:
    store = SqliteStore(path)
    async with opened(store):
        await store.append("s", "log", [b"x" * 3000] * 50)
    assert ["state.db"] == [item.name for item in path.parent.iterdir()]
    with closing(sqlite3.connect(path)) as db, db:
        assert (50,) == db.execute("SELECT count(*) FROM entries").fetchone()
    db.close()


async def test_200_threads_that_save_at_once_share_commits(path: Path) -> None:
    store = SqliteStore(path)
    async with opened(store):
        worker = store._writer
        assert worker is not None
        before = worker._commits
        await asyncio.gather(*(store.append("s", f"t{at}", [b"x" * 2500]) for at in range(200)))
        assert 20 > worker._commits - before
        await store.set("s", "k", 1)
        assert Stored(1, 1) == await store.get("s", "k")


async def test_an_append_writes_what_is_new_however_long_the_log_is(path: Path) -> None:
    store = SqliteStore(path)
    entry, head = os.urandom(2500), {"head": "h" * 280}
    async with opened(store):
        assert store._writer is not None
        # Nothing is moved out of the log of writes, so that its growth is what was written.
        store._writer._commits = -10_000
        await store._writer.do(lambda db: db.execute("PRAGMA wal_autocheckpoint = 0").fetchall())

        async def written(count: int) -> float:
            before = path.with_name("state.db-wal").stat().st_size
            for _ in range(count):
                await store.append("svc/user", "agent-memory/thread", [entry], head=head)
            return (path.with_name("state.db-wal").stat().st_size - before) / count

        early = await written(50)
        await store.append("svc/user", "agent-memory/thread", [entry] * 20_000, head=head)
        late = await written(50)
    assert early < 12_000
    assert late < 12_000
    assert 20_100 * 2500 * 1.1 > path.stat().st_size


async def test_a_file_of_a_newer_flowrt_is_refused_by_name(path: Path) -> None:
    async with opened(SqliteStore(path)):
        pass
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreUnavailable, match=rf"{path} cannot be opened: it has schema 99"):
        await SqliteStore(path).open()


async def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE invoices (id INTEGER)")
    db.close()
    with pytest.raises(StoreUnavailable, match="another program"):
        await SqliteStore(path).open()
    with closing(sqlite3.connect(path)) as db, db:
        assert [("invoices",)] == db.execute("SELECT name FROM sqlite_master").fetchall()
    db.close()


@pytest.mark.parametrize("what", ["garbage", "folder", "below a file", "cut short"])
async def test_what_is_no_database_is_refused_with_its_url(path: Path, what: str) -> None:
    if what == "garbage":
        path.write_bytes(b"no database " * 1000)
    elif what == "folder":
        path.mkdir()
    elif what == "below a file":
        path.write_text("")
        path = path / "state.db"
    else:
        async with opened(SqliteStore(path)):
            pass
        path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StoreUnavailable, match=rf"storage sqlite:{path} cannot be opened: ."):
        await SqliteStore(path).open()


async def test_a_file_that_cannot_be_written_is_refused_with_its_url(path: Path) -> None:
    async with opened(SqliteStore(path)):
        pass
    path.chmod(0o400)
    if os.access(path, os.W_OK):
        # Root writes anyway; this flag of the database refuses even root.
        path.write_bytes(path.read_bytes()[:18] + b"\x03\x03" + path.read_bytes()[20:])
    with pytest.raises(StoreUnavailable, match=rf"storage sqlite:{path} cannot be opened: "):
        await SqliteStore(path).open()


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_file_that_is_removed_is_an_error_and_not_a_silent_loss(
    path: Path, replaced: bool
) -> None:
    store = SqliteStore(path)
    async with opened(store):
        await store.set("s", "k", 1)
        path.unlink()
        if replaced:
            path.touch()
        for work in (store.get("s", "k"), store.set("s", "k", 2), store.append("s", "l", [b"x"])):
            with pytest.raises(StoreUnavailable, match=rf"{path} is gone"):
                await work


async def test_a_full_disk_fails_what_did_not_fit_and_nothing_else(path: Path) -> None:
    store = SqliteStore(path)
    async with opened(store):
        assert store._writer is not None
        await store.append("s", "log", [b"a"], head=1)

        async def limit(pages: int) -> None:
            assert store._writer is not None
            await store._writer.do(
                lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchall()
            )

        await limit(30)
        large = store.append("s", "log", [b"x" * 200_000], head=2)
        small = (store.set("s", f"k{at}", at) for at in range(5))
        failed, *fitted = await asyncio.gather(large, *small, return_exceptions=True)
        assert isinstance(failed, StoreError)
        assert f"storage sqlite:{path} failed: database or disk is full" == str(failed)
        assert [1] * 5 == fitted
        await limit(100_000)
        assert 2 == await store.append("s", "log", [b"x" * 200_000], head=2, expect=1)


async def test_a_value_larger_than_sqlite_takes_fails_alone(path: Path) -> None:
    store = SqliteStore(path)
    async with opened(store):
        assert store._writer is not None
        # In Python 3.11 a limit that can be set without storing a gigabyte.
        await store._writer.do(lambda db: db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000))
        works = [store.set("s", f"k{at}", b"x" * (200_000 if at == 2 else 10)) for at in range(5)]
        found = await asyncio.gather(*works, return_exceptions=True)
        assert isinstance(found.pop(2), StoreError)
        assert [1] * 4 == found


async def test_expired_keys_are_cleaned_up_on_the_way_and_at_the_start(path: Path) -> None:
    clock = HandClock()
    store = SqliteStore(path, clock=clock)

    async def rows() -> list[tuple[int, int]]:
        assert store._reader is not None
        return await store._reader.do(
            lambda db: db.execute(
                "SELECT (SELECT count(*) FROM keys), (SELECT count(*) FROM entries)"
            ).fetchall()
        )

    async with opened(store):
        for at in range(10):
            await store.append("s", f"old{at}", [b"x", b"y"], ttl=60)
        clock.advance(61)
        for at in range(2):
            await store.set("s", f"new{at}", 1, ttl=60)
        assert [(4, 4)] == await rows()
    async with opened(store):
        assert [(2, 0)] == await rows()


def test_many_processes_may_create_the_file_at_once(path: Path) -> None:
    code = """
import asyncio, sys
from flowrt.storage.sqlite import SqliteStore
async def main():
    store = SqliteStore(sys.argv[1])
    sys.stdin.readline()
    await store.open()
    await store.append("s", "log", [b"x"])
    await store.close()
asyncio.run(main())
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(6)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    errors = [process.communicate()[1] for process in processes]
    assert [b""] * 6 == errors

    async def read() -> int:
        store = SqliteStore(path)
        async with opened(store):
            log = await store.read_log("s", "log")
            return len(log.entries) if log else 0

    assert 6 == asyncio.run(read())


async def test_two_stores_of_one_process_do_not_drop_each_others_locks(path: Path) -> None:
    first, second = SqliteStore(path), SqliteStore(path)
    async with opened(first):
        assert await first.try_lease("s", "k", ttl=1)
        async with opened(second):
            await second.set("s", "k", 1)
        # Were the first's locks gone, another process would take itself for the only one, and
        # remove the log of writes when it is done.
        code = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM keys')"
        subprocess.run([sys.executable, "-c", code, str(path)], check=True)
        assert path.with_name("state.db-wal").exists()
        await first.set("s", "k", 2)
        assert Stored(2, 2) == await first.get("s", "k")


async def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore(".flowrt/state.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    async with opened(store):
        await store.set("s", "k", 1)
    assert (tmp_path / ".flowrt" / "state.db").exists()
    assert "sqlite:.flowrt/state.db" == store.url


async def test_the_schema_is_numbered(path: Path) -> None:
    async with opened(SqliteStore(path)):
        pass
    with closing(sqlite3.connect(path)) as db, db:
        assert (len(MIGRATIONS),) == db.execute("PRAGMA user_version").fetchone()
    db.close()
