"""Files that earlier versions left."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from flowrt.storage.protocol import Log, Stored
from flowrt.storage.sqlite import SqliteStore
from flowrt.testing.store_conformance.suite import opened


async def test_a_file_of_the_first_schema_is_read_and_written(tmp_path: Path) -> None:
    """The file is as it was in the first version; it is never made anew."""
    path = tmp_path / "state.db"
    db = sqlite3.connect(path)
    db.executescript(Path(__file__).with_name("m001_initial.sql").read_text(encoding="utf-8"))
    db.close()
    async with opened(SqliteStore(path)) as store:
        assert Stored({"name": "Ada", "é": None}, 2) == await store.get("demo/user", "profile")
        assert Stored(b"\x00\xff", 1) == await store.get("demo/user", "bytes")
        log = Log({"tokens": 12}, [b"two", b"three"], 3, 2)
        assert log == await store.read_log("demo/user", "agent-memory/t")
        assert 4 == await store.append("demo/user", "agent-memory/t", [b"four"], expect=3)
        assert await store.get("demo/user", "over") is None
