"""The file behind a SQLite store."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from flowrt.errors import StoreUnavailable
from flowrt.storage import sqlite_file
from flowrt.storage.protocol import Stored
from flowrt.storage.sqlite import SqliteStore
from flowrt.testing.store_conformance.suite import opened


async def test_a_long_transaction_of_another_process_holds_up_writes_but_no_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
    path = tmp_path / "state.db"
    async with opened(SqliteStore(path)) as store:
        await store.set("s", "k", "before")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writes = [store.set("s", f"k{number}", 1) for number in range(3)]
        results, found = await asyncio.gather(
            asyncio.gather(*writes, return_exceptions=True), store.get("s", "k")
        )
        assert Stored("before", 1) == found
        assert [StoreUnavailable] * 3 == [type(result) for result in results]
        assert f"storage sqlite:{path} is locked" in str(results[0])
        other.execute("ROLLBACK")
        other.close()
        assert 2 == await store.set("s", "k", "after", expect=1)


async def test_the_larger_the_file_the_longer_another_process_may_rewrite_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forgetting somebody rewrites the file: with 10 s for any size, the others failed."""
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.0)
    monkeypatch.setattr(sqlite_file, "REWRITE_RATE", 1e3)
    path = tmp_path / "state.db"
    async with opened(SqliteStore(path)) as store:
        await store.set("s", "k", "before")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        asyncio.get_running_loop().call_later(0.3, other.execute, "ROLLBACK")
        assert 1 == await store.set("s", "l", "after")
        other.close()
