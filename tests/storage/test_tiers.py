"""Where each namespace lives, and what a URL names."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from flowrt.errors import CallError, StoreUnavailable
from flowrt.storage.agents.protocol import Place
from flowrt.storage.memory import VOLATILE_BYTES, MemoryStore
from flowrt.storage.protocol import KeyValue, Stored
from flowrt.storage.redis import RedisStore
from flowrt.storage.sqlite import SqliteStore
from flowrt.storage.tiers import NAMESPACES, Storage, parse_storage_url


class CountingStore(MemoryStore):
    """Counts how often it was opened and closed."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.opened = self.closed = 0
        self.failures = failures

    async def open(self) -> None:
        self.opened += 1
        await asyncio.sleep(0)
        if self.opened <= self.failures:
            raise StoreUnavailable("not yet")

    async def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("url", "kind", "shown"),
    [
        ("memory:", MemoryStore, "memory:"),
        ("memory://", MemoryStore, "memory:"),
        ("sqlite:state.db", SqliteStore, "sqlite:state.db"),
        ("sqlite:///var/lib/state.db", SqliteStore, "sqlite:/var/lib/state.db"),
        ("redis://:secret-word@h:1/2", RedisStore, "redis://:[redacted]@h:1/2"),
        ("rediss://u:secret-word@h", RedisStore, "rediss://u:[redacted]@h"),
    ],
)
def test_a_url_names_a_store_that_hides_its_password(url: str, kind: type, shown: str) -> None:
    store = parse_storage_url(url)
    assert kind is type(store)
    assert shown == store.url


@pytest.mark.parametrize(
    "url", ["", "state.db", "/var/state.db", "postgres://h/db", "sqlite:", "memory:x", "Redis"]
)
def test_any_other_url_is_refused_with_those_that_are_known(url: str) -> None:
    with pytest.raises(CallError, match=r"sqlite:PATH, redis://HOST:PORT/DB or memory:"):
        parse_storage_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:pa/ss-xyzzy@h:6379/0",
        "redis://:pa?ss-xyzzy@h:6379/0",
        "redis://:pa#ss-xyzzy@h:6379/0",
        "redis://:pa[ss-xyzzy@h:6379/0",
        "redis://:pass-xyzzy@h:port/0",
        "redis://:pass-xyzzy@h:6379/database",
        "redis://",
    ],
)
def test_a_malformed_redis_url_is_refused_without_showing_the_password(url: str) -> None:
    with pytest.raises(CallError, match="percent-encoded") as caught:
        parse_storage_url(url)
    assert "xyzzy" not in str(caught.value)


def test_the_environment_names_the_stores_and_arguments_win() -> None:
    environ = {"FLOWRT_STORAGE": "sqlite:env.db", "FLOWRT_VOLATILE": "redis://volatile"}
    from_env = Storage.from_urls("s", environ=environ)
    assert "sqlite:env.db" == from_env._persistent._store.url
    assert "redis://volatile" == from_env._volatile._store.url
    given = Storage.from_urls("s", "sqlite:given.db", "memory:", environ=environ)
    assert "sqlite:given.db" == given._persistent._store.url
    assert "memory:" == given._volatile._store.url


async def test_nothing_named_means_a_file_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = Storage.from_urls("s", environ={})
    assert [] == list(tmp_path.iterdir())
    await storage.space("user_volatile").set("k", 1)
    assert [] == list(tmp_path.iterdir())
    await storage.space("user").set("k", 1)
    await storage.close()
    assert (tmp_path / ".flowrt" / "state.db").is_file()
    again = Storage.from_urls("s", environ={})
    assert Stored(1, 1) == await again.space("user").get("k")
    assert await again.space("user_volatile").get("k") is None
    await again.close()


async def test_the_volatile_tier_is_bounded_unless_a_store_is_named() -> None:
    storage = Storage.from_urls("s", "memory:", environ={})
    big = b"x" * (VOLATILE_BYTES // 3)
    for number in range(4):
        await storage.space("user_volatile").set(f"k{number}", big)
        await storage.space("user").set(f"k{number}", big)
    volatile = await storage.space("user_volatile").scan()
    persistent = await storage.space("user").scan()
    assert (2, 4) == (len(volatile.keys), len(persistent.keys))


async def test_services_and_namespaces_on_one_store_do_not_see_each_other() -> None:
    store = MemoryStore()
    names = ["a", "a/user", "a%2Fuser", "a%", "", "A", "a_volatile"]
    spaces = [Storage(name, store, store).space(space) for name in names for space in NAMESPACES]
    for number, space in enumerate(spaces):
        await space.set("k", number)
    for number, space in enumerate(spaces):
        assert Stored(number, 1) == await space.get("k")
    assert len(spaces) == len({space.name for space in spaces})


async def test_a_store_is_opened_once_by_many_at_once_and_closed_once() -> None:
    store, other = CountingStore(), CountingStore()
    storage = Storage("s", store, other)
    await asyncio.gather(*(storage.space("user").set(f"k{n}", n) for n in range(20)))
    await storage.close()
    await storage.close()
    assert (1, 1) == (store.opened, store.closed)
    assert (0, 0) == (other.opened, other.closed)


async def test_a_store_that_could_not_be_opened_is_tried_again() -> None:
    store = CountingStore(failures=1)
    space = Storage("s", store, MemoryStore()).space("user")
    results = await asyncio.gather(*(space.get("k") for _ in range(3)), return_exceptions=True)
    assert [StoreUnavailable] * 3 == [type(result) for result in results]
    assert await space.get("k") is None
    assert 2 == store.opened


async def test_the_first_caller_may_be_cancelled_while_the_others_wait_for_the_store() -> None:
    store = CountingStore()
    space = Storage("s", store, MemoryStore()).space("user")
    first, second = asyncio.create_task(space.get("k")), asyncio.create_task(space.get("k"))
    await asyncio.sleep(0)
    first.cancel()
    assert await second is None
    assert first.cancelled()
    assert 1 == store.opened


async def test_opening_ahead_finds_a_missing_store_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    storage = Storage.from_urls("s", f"sqlite:{tmp_path}/file/state.db", environ={})
    with pytest.raises(StoreUnavailable, match=f"sqlite:{tmp_path}/file/state.db"):
        await storage.open()
    await storage.close()


async def test_a_package_may_bring_a_store_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "their_store-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-store\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[flowrt.stores]\ntheirs = their_store:Theirs\n")
    (tmp_path / "their_store.py").write_text(
        "from flowrt.storage.memory import MemoryStore\n"
        "class Theirs(MemoryStore):\n"
        "    def __init__(self, url):\n"
        "        super().__init__(url=url)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    storage = Storage.from_urls("s", "theirs://somewhere", environ={})
    await storage.space("user").set("k", 1)
    assert Stored(1, 1) == await storage.space("user").get("k")
    assert "theirs://somewhere" == storage._persistent._store.url


def test_naming_a_store_imports_no_client_and_no_thread_of_it() -> None:
    program = (
        "import sys\n"
        "from flowrt.storage.tiers import Storage\n"
        "Storage.from_urls('s', 'redis://h', 'memory:', environ={})\n"
        "Storage.from_urls('s', 'memory:', environ={})\n"
        "import threading\n"
        "print([n for n in ('redis', 'sqlite3', 'structlog') if n in sys.modules],"
        " threading.active_count())\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "[] 1\n" == found.stdout, found.stderr


async def test_closing_waits_for_an_opening_under_way() -> None:
    class Slow(MemoryStore):
        gate = asyncio.Event()
        steps: list[str] = []  # noqa: RUF012 - one instance

        async def open(self) -> None:
            await self.gate.wait()
            self.steps.append("opened")

        async def close(self) -> None:
            self.steps.append("closed")

    store = Slow()
    storage = Storage("svc", store, MemoryStore())
    using = asyncio.create_task(storage.space("user").get("k"))
    await asyncio.sleep(0)
    closing = asyncio.create_task(storage.close())
    await asyncio.sleep(0)
    store.gate.set()
    await asyncio.wait([using, closing])
    assert ["opened", "closed"] == store.steps


async def test_the_second_store_is_closed_also_where_the_first_fails_to() -> None:
    class Failing(MemoryStore):
        async def close(self) -> None:
            raise StoreUnavailable("gone")

    class Closing(MemoryStore):
        closed = False

        async def close(self) -> None:
            self.closed = True

    volatile = Closing()
    storage = Storage("svc", Failing(), volatile)
    await storage.open()
    with pytest.raises(StoreUnavailable, match="gone"):
        await storage.close()
    assert volatile.closed


async def test_the_record_of_agents_opens_its_tier_on_first_use() -> None:
    persistent, volatile = CountingStore(), CountingStore()
    storage = Storage("s", persistent, volatile)
    kept, passing = storage.agents(), storage.agents(volatile=True)
    assert (0, 0) == (persistent.opened, volatile.opened)
    await asyncio.gather(*(kept.touch(Place("s", "a", f"t{n}", "u")) for n in range(5)))
    assert (1, 0) == (persistent.opened, volatile.opened)
    assert ["u"] == await storage.agents().users("s", "a")
    assert [] == await passing.users("s", "a")
    assert (1, 1) == (persistent.opened, volatile.opened)


def test_a_store_without_a_record_of_agents_says_so_when_it_is_asked_for() -> None:
    class OnlyKeys:
        url = "theirs://somewhere"

    storage = Storage("s", cast(KeyValue, OnlyKeys()), MemoryStore())
    with pytest.raises(CallError, match=r"theirs://somewhere keeps no record of agents.*agentId"):
        storage.agents()
    assert storage.agents(volatile=True) is not None
