"""`sql` and its connector `database`, on real SQLite files."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError, ConnectorError
from flowrt.message import Outcome
from flowrt.service import Result
from tests.services import flows, load

MAKE = "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, who TEXT, total REAL, scan BLOB)"


def sql(query: str, *args: str, **settings: Any) -> dict[str, Any]:
    return {"type": "sql", "connector": "shop", "query": query, "args": list(args), **settings}


def document(dsn: str = "shop.db", **chains: list[dict[str, Any]]) -> dict[str, Any]:
    connector = {"name": "shop", "type": "database", "settings": {"driver": "sqlite", "dsn": dsn}}
    return flows(**chains) | {"connectors": [connector]}


ADD = sql("INSERT INTO orders (who, total) VALUES (?, ?)", "body.who", "body.total", exec=True)
CHAINS = {
    "make": [sql(MAKE, exec=True)],
    "add": [ADD],
    "all": [sql("SELECT id, who, total FROM orders ORDER BY id")],
    "one": [sql("SELECT total FROM orders WHERE who = ?", "body.who", single=True)],
}


async def send(folder: Path, chain: list[dict[str, Any]], data: Any = None) -> Result:
    async with load(folder, document(":memory:", main=chain)) as service:
        return await service.invoke("main", data)


def body(result: Result) -> Any:
    assert result.message is not None, result.error
    return result.message.body


@pytest.mark.parametrize("dsn", ["shop.db", "file:shop.db?mode=rwc", ":memory:"])
async def test_rows_are_objects_and_a_change_says_how_many(tmp_path: Path, dsn: str) -> None:
    async with load(tmp_path, document(dsn, **CHAINS)) as service:
        assert {"rowsAffected": 0} == body(await service.invoke("make"))
        added = await service.invoke("add", {"who": "Ann", "total": 2.5})
        assert {"rowsAffected": 1} == body(added)
        await service.invoke("add", {"who": None, "total": 3})
        rows = [{"id": 1, "who": "Ann", "total": 2.5}, {"id": 2, "who": None, "total": 3.0}]
        assert rows == body(await service.invoke("all"))
        assert {"total": 2.5} == body(await service.invoke("one", {"who": "Ann"}))
        assert body(await service.invoke("one", {"who": "Bob"})) is None


async def test_what_is_written_is_there_after_a_restart_beside_the_yaml_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for expected in (1, 2):
        async with load(tmp_path, document(**CHAINS)) as service:
            await service.invoke("make")
            await service.invoke("add", {"who": "Ann", "total": 1})
            assert expected == len(body(await service.invoke("all")))
    assert (tmp_path / "shop.db").exists()


async def test_no_text_of_a_message_becomes_a_part_of_the_statement(tmp_path: Path) -> None:
    evil = "'); DROP TABLE orders; --"
    async with load(tmp_path, document(**CHAINS)) as service:
        await service.invoke("make")
        await service.invoke("add", {"who": evil, "total": 1})
        assert {"total": 1.0} == body(await service.invoke("one", {"who": evil}))


async def test_bytes_come_as_base64_and_text_without_what_no_store_can_hold(
    tmp_path: Path,
) -> None:
    query = "SELECT x'00ff' AS scan, 'a' || char(0) || 'b' AS text, 1 AS n"
    assert [{"scan": "AP8=", "text": "a\ufffdb", "n": 1}] == body(
        await send(tmp_path, [sql(query)])
    )


@pytest.mark.parametrize(
    ("block", "data", "text"),
    [
        (sql("SELECT * FROM nowhere"), None, "connector 'shop': no such table: nowhere"),
        (sql("SELECT ?"), None, "connector 'shop': Incorrect number of bindings"),
        (sql("SELECT ?", "body"), [1], "sql args[0]: a list is no value of a database"),
        (sql("SELECT 1; SELECT 2"), None, "You can only execute one statement at a time"),
        (sql("BEGIN", exec=True), None, "a transaction cannot stay open after its statement"),
    ],
)
async def test_a_statement_that_fails_fails_the_block(
    tmp_path: Path, block: dict[str, Any], data: Any, text: str
) -> None:
    result = await send(tmp_path, [block], data)
    assert Outcome.FAILED == result.outcome
    assert text in str(result.error)


async def test_a_hundred_writers_at_once_are_all_there(tmp_path: Path) -> None:
    async with load(tmp_path, document(**CHAINS)) as service:
        await service.invoke("make")
        data = [{"who": str(number), "total": number} for number in range(100)]
        await asyncio.gather(*(service.invoke("add", each) for each in data))
        assert 100 == len(body(await service.invoke("all")))


async def test_a_statement_that_is_cancelled_does_not_hold_up_the_next(tmp_path: Path) -> None:
    endless = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    )
    chains = {"endless": [sql(endless)], "quick": [sql("SELECT 1 AS n", single=True)]}
    async with load(tmp_path, document(**chains)) as service:
        run = asyncio.ensure_future(service.invoke("endless"))
        waiting = asyncio.ensure_future(service.invoke("quick"))
        for _ in range(100):
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert {"n": 1} == body(await waiting)


async def test_another_process_that_writes_is_waited_for(tmp_path: Path) -> None:
    async with load(tmp_path, document(**CHAINS)) as service:
        await service.invoke("make")
        other = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        run = asyncio.ensure_future(service.invoke("add", {"who": "Ann", "total": 1}))
        for _ in range(100):
            await asyncio.sleep(0)
        other.execute("COMMIT")
        other.close()
        assert {"rowsAffected": 1} == body(await run)


async def test_a_file_that_is_no_database_fails_the_start(tmp_path: Path) -> None:
    (tmp_path / "shop.db").write_text("not a database, but long enough to be looked at" * 100)
    with pytest.raises(ConnectorError, match="cannot be opened: file is not a database"):
        async with load(tmp_path, document(main=[])):
            pass


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"driver": "postgres", "dsn": "x"}, "flowrt brings no driver for postgres: use sqlite"),
        ({"driver": "mysql", "dsn": "x"}, "found 'mysql'"),
        ({"driver": "sqlite"}, "missing key 'dsn'"),
    ],
)
def test_a_database_out_of_reach_does_not_load(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    config = flows(main=[]) | {
        "connectors": [{"name": "shop", "type": "database", "settings": settings}]
    }
    with pytest.raises(ConfigError, match=text):
        load(tmp_path, config)


def test_a_single_row_of_a_change_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="exec gives no rows"):
        load(tmp_path, document(main=[sql(MAKE, exec=True, single=True)]))
