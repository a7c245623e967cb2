"""The tiers of a service: which store a namespace is in, and when it is opened."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import CallError, StoreUnavailable
from flowrt.storage.memory import VOLATILE_BYTES, MemoryStore
from flowrt.storage.protocol import KeyValue, Stored
from flowrt.storage.redis import RedisStore
from flowrt.storage.sqlite import SqliteStore
from flowrt.storage.tiers import NAMESPACES, Storage, parse_storage_url


class Opening(MemoryStore):
    """Counts how often it is opened, and lets a test hold or fail it."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = self.closed = 0
        self.gate: asyncio.Event | None = None
        self.failure: Exception | None = None

    async def open(self) -> None:
        self.opened += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure

    async def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("memory:", MemoryStore),
        ("memory://", MemoryStore),
        ("sqlite:state.db", SqliteStore),
        ("sqlite:///var/lib/state.db", SqliteStore),
        ("redis://localhost:6379/1", RedisStore),
        ("rediss://localhost", RedisStore),
    ],
)
def test_a_scheme_names_a_store(url: str, kind: type) -> None:
    assert kind is type(parse_storage_url(url))


@pytest.mark.parametrize(
    "url", ["", "state.db", "mysql://host/db", "sqlite:", "sqlite::memory:", "memory:x", "C:\\x.db"]
)
def test_an_unknown_store_is_refused_with_those_there_are(url: str) -> None:
    with pytest.raises(CallError, match=r"sqlite:PATH, redis://HOST:PORT/DB or memory:"):
        parse_storage_url(url)


def test_a_store_url_is_refused_without_its_password() -> None:
    with pytest.raises(CallError) as caught:
        parse_storage_url("mysql://ann:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


def test_a_store_of_others_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "others-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[flowrt.stores]\nelse = others:Store\n")
    (tmp_path / "others.py").write_text(
        "class Store:\n    def __init__(self, url):\n        self.url = url\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert "else://there" == parse_storage_url("else://there").url


def stores(storage: Storage) -> tuple[KeyValue, KeyValue]:
    return storage._persistent._store, storage._volatile._store


def test_without_a_url_state_is_in_the_working_directory_and_volatile_in_memory() -> None:
    persistent, volatile = stores(Storage.from_urls("svc", environ={}))
    assert isinstance(persistent, SqliteStore)
    assert Path(".flowrt/state.db").absolute() == persistent.path
    assert isinstance(volatile, MemoryStore)
    assert VOLATILE_BYTES == volatile._max_bytes


def test_an_argument_comes_before_the_environment() -> None:
    environ = {"FLOWRT_STORAGE": "sqlite:env.db", "FLOWRT_VOLATILE": "redis://env:1"}
    persistent, volatile = stores(Storage.from_urls("svc", environ=environ))
    assert ("sqlite:env.db", "redis://env:1") == (persistent.url, volatile.url)
    persistent, volatile = stores(Storage.from_urls("svc", "memory:", "memory:", environ=environ))
    assert isinstance(persistent, MemoryStore)
    assert isinstance(volatile, MemoryStore)
    assert (None, VOLATILE_BYTES) == (persistent._max_bytes, volatile._max_bytes)


async def test_namespaces_are_apart_and_in_their_tier() -> None:
    persistent, volatile = MemoryStore(), MemoryStore()
    storage = Storage("svc", persistent, volatile)
    for name in NAMESPACES:
        await storage.space(name).set("k", name)
    for name in NAMESPACES:
        assert Stored(name, 1) == await storage.space(name).get("k")
    assert Stored("user", 1) == await persistent.get("svc/user", "k")
    assert Stored("user_volatile", 1) == await volatile.get("svc/user_volatile", "k")
    assert await persistent.get("svc/user_volatile", "k") is None


async def test_no_service_name_reaches_into_another_service() -> None:
    store = MemoryStore()
    names = ["a", "a/user", "a/user/user", "a%2Fuser", "a%252Fuser", "", " ", "ä", "\ud83d"]
    for name in names:
        await Storage(name, store, store).space("user").set("k", name)
    for name in names:
        assert Stored(name, 1) == await Storage(name, store, store).space("user").get("k")


async def test_a_space_does_all_that_a_store_does() -> None:
    space = Storage("svc", MemoryStore(), MemoryStore()).space("user")
    assert 1 == await space.set("k", 1, expect=0, ttl=60)
    assert await space.delete("k", expect=1)
    assert 1 == await space.append("l", [b"a"], head=1, expect=0)
    assert 2 == await space.rewrite("l", [b"b"], head=2, expect=1)
    log = await space.read_log("l")
    assert log is not None
    assert [b"b"] == log.entries
    assert ["l"] == [key.name for key in (await space.scan("", limit=1)).keys]
    lease = await space.try_lease("l", ttl=60)
    assert lease is not None
    assert await space.try_lease("l", ttl=60) is None
    await lease.release()


async def test_a_store_is_opened_once_however_many_come_at_once() -> None:
    store = Opening()
    store.gate = asyncio.Event()
    space = Storage("svc", store, MemoryStore()).space("user")
    tasks = [asyncio.create_task(space.set("k", at)) for at in range(10)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    store.gate.set()
    await asyncio.wait(tasks)
    assert 1 == store.opened
    assert tasks[0].cancelled()
    assert list(range(1, 10)) == [task.result() for task in tasks[1:]]


async def test_a_store_that_cannot_be_opened_is_tried_again() -> None:
    store = Opening()
    store.failure = StoreUnavailable("not yet")
    space = Storage("svc", store, MemoryStore()).space("user")
    found = await asyncio.gather(*(space.get("k") for _ in range(3)), return_exceptions=True)
    assert [store.failure] * 3 == found
    store.failure = None
    assert await space.get("k") is None
    assert 2 == store.opened


async def test_closing_closes_what_was_opened_and_it_may_be_opened_again() -> None:
    used, unused = Opening(), Opening()
    storage = Storage("svc", used, unused)
    await storage.space("user").get("k")
    await storage.close()
    await storage.close()
    assert (1, 1) == (used.opened, used.closed)
    assert (0, 0) == (unused.opened, unused.closed)
    await storage.space("system").get("k")
    await storage.open()
    assert (2, 1) == (used.opened, unused.opened)
    await storage.close()


async def test_closing_waits_for_an_opening_under_way() -> None:
    store = Opening()
    store.gate = asyncio.Event()
    storage = Storage("svc", store, MemoryStore())
    using = asyncio.create_task(storage.space("user").get("k"))
    await asyncio.sleep(0)
    closing = asyncio.create_task(storage.close())
    await asyncio.sleep(0)
    store.gate.set()
    await asyncio.wait([using, closing])
    assert (1, 1) == (store.opened, store.closed)


async def test_both_tiers_are_closed_even_where_the_first_fails() -> None:
    class Failing(Opening):
        async def close(self) -> None:
            raise StoreUnavailable("gone")

    volatile = Opening()
    storage = Storage("svc", Failing(), volatile)
    await storage.open()
    with pytest.raises(StoreUnavailable, match="gone"):
        await storage.close()
    assert 1 == volatile.closed


def test_storage_that_is_not_used_costs_no_file_and_no_import(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from flowrt.storage.tiers import Storage
storage = Storage.from_urls("svc", environ={"FLOWRT_VOLATILE": "redis://localhost:1"})
storage.space("user"), storage.space("user_volatile")
asyncio.run(storage.close())
print([name for name in ("sqlite3", "redis", "structlog") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ("[]\n", []) == (done.stdout, list(tmp_path.iterdir()))


def test_storage_is_used_in_two_event_loops_one_after_the_other(tmp_path: Path) -> None:
    storage = Storage.from_urls("svc", f"sqlite:{tmp_path}/a/b/state.db", environ={})

    async def count() -> Any:
        space = storage.space("user")
        found = await space.get("n")
        await space.set("n", found.value + 1 if found else 1)
        await storage.space("user_volatile").set("n", 1)
        await storage.close()
        return found and found.value

    assert [None, 1, 2] == [asyncio.run(count()) for _ in range(3)]
