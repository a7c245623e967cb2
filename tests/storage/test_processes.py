"""Several processes on one store."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flowrt.ids import new_id
from flowrt.storage.lease import hold
from flowrt.storage.memory import MemoryStore
from flowrt.storage.tiers import Storage, parse_storage_url

PROGRAM = """
import asyncio, sys
from flowrt.errors import VersionConflict
from flowrt.storage.lease import hold
from flowrt.storage.memory import MemoryStore
from flowrt.storage.tiers import Storage, parse_storage_url

async def main(url, service, name):
    storage = Storage(service, parse_storage_url(url), MemoryStore())
    space = storage.space("user")
    await storage.open()
    print("ready", flush=True)
    sys.stdin.readline()
{work}
    await storage.close()

asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def process(url: str, service: str, name: str, work: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has opened the store and waits for a line before it does `work`."""
    program = PROGRAM.format(work=textwrap.indent(textwrap.dedent(work), "    "))
    with subprocess.Popen(
        [sys.executable, "-c", program, url, service, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def started(running: subprocess.Popen[str]) -> None:
    """Wait until the process has opened the store."""
    assert running.stdout is not None
    line = running.stdout.readline()
    assert "ready\n" == line, running.communicate()[1]


def go(running: subprocess.Popen[str]) -> None:
    """Let it work."""
    assert running.stdin is not None
    running.stdin.write("\n")
    running.stdin.flush()


def finish(running: subprocess.Popen[str]) -> str:
    """Wait for its end; what it printed."""
    out, err = running.communicate(timeout=60)
    assert 0 == running.returncode, err
    assert "" == err
    return out


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that several processes can use."""
    if request.param == "redis":
        shared: str = request.getfixturevalue("redis_url")
        return shared
    return f"sqlite:{tmp_path}/folder/state.db"


def storage_at(url: str, service: str) -> Storage:
    return Storage(service, parse_storage_url(url), MemoryStore())


async def test_three_processes_append_to_one_log_and_nothing_is_lost(url: str) -> None:
    service = f"test {new_id()}"
    work = """
    for number in range(100):
        entries = [f"{name} {number} {half}".encode() for half in "ab"]
        await space.append("log", entries, head=name)
    """
    with (
        process(url, service, "one", work) as one,
        process(url, service, "two", work) as two,
        process(url, service, "three", work) as three,
    ):
        # The store is made by all three at once.
        for running in (one, two, three):
            started(running)
        for running in (one, two, three):
            go(running)
        for running in (one, two, three):
            finish(running)
    storage = storage_at(url, service)
    log = await storage.space("user").read_log("log")
    await storage.close()
    assert log is not None
    assert 300 == log.version
    for name in ("one", "two", "three"):
        mine = [entry.decode() for entry in log.entries if entry.startswith(name.encode() + b" ")]
        assert [f"{name} {number} {half}" for number in range(100) for half in "ab"] == mine
    pairs = zip(log.entries[::2], log.entries[1::2], strict=True)
    assert all(first[:-1] == second[:-1] for first, second in pairs)


async def test_three_processes_that_write_on_versions_lose_no_update(url: str) -> None:
    service = f"test {new_id()}"
    work = """
    done = 0
    while done < 30:
        found = await space.get("count")
        value, version = (found.value, found.version) if found else (0, 0)
        try:
            await space.set("count", value + 1, expect=version)
            done += 1
        except VersionConflict:
            pass
    """
    with (
        process(url, service, "one", work) as one,
        process(url, service, "two", work) as two,
        process(url, service, "three", work) as three,
    ):
        for running in (one, two, three):
            started(running)
            go(running)
        for running in (one, two, three):
            finish(running)
    storage = storage_at(url, service)
    found = await storage.space("user").get("count")
    await storage.close()
    assert found is not None
    assert (90, 90) == (found.value, found.version)


async def test_three_processes_that_hold_a_key_need_no_versions(url: str) -> None:
    service = f"test {new_id()}"
    work = """
    for _ in range(10):
        async with hold(space, "lock"):
            found = await space.get("count")
            await space.set("count", (found.value if found else 0) + 1)
    """
    with (
        process(url, service, "one", work) as one,
        process(url, service, "two", work) as two,
        process(url, service, "three", work) as three,
    ):
        for running in (one, two, three):
            started(running)
            go(running)
        for running in (one, two, three):
            finish(running)
    storage = storage_at(url, service)
    found = await storage.space("user").get("count")
    await storage.close()
    assert found is not None
    assert 30 == found.value


HOLD = """
async with hold(space, "agent-memory/t", ttl=0.5):
    await space.append("log", [b"acknowledged"])
    print("held", flush=True)
    await asyncio.Event().wait()
"""


async def test_a_process_that_is_killed_loses_its_lease_and_nothing_it_saved(url: str) -> None:
    service = f"test {new_id()}"
    storage = storage_at(url, service)
    space = storage.space("user")
    with process(url, service, "one", HOLD) as running:
        started(running)
        go(running)
        assert running.stdout is not None
        assert "held\n" == running.stdout.readline()
        lease = await space.try_lease("agent-memory/t", ttl=1)
        assert lease is None
        running.kill()
        running.wait()
        # In SQLite at once: the system lets go of a dead process's locks. In Redis after its ttl.
        wait = 0 if url.startswith("sqlite") else 10
        async with hold(space, "agent-memory/t", wait=wait):
            log = await space.read_log("log")
    await storage.close()
    assert log is not None
    assert [b"acknowledged"] == log.entries


async def test_a_process_reads_while_two_others_write_in_a_loop(tmp_path: Path) -> None:
    """FB-48."""
    url, service = f"sqlite:{tmp_path}/state.db", "test"
    write = """
    for number in range(400):
        await space.set(f"{name} {number % 7}", "x" * 5000)
        await space.append("log", [b"x" * 2000], head=number)
    """
    read = """
    seen, version = 0, 0
    while version < 800:
        log = await space.read_log("log")
        if log is not None:
            assert log.version >= version and len(log.entries) == log.version
            version = log.version
            seen += 1
        await space.scan()
    print(seen > 3)
    """
    with (
        process(url, service, "one", write) as one,
        process(url, service, "two", write) as two,
        process(url, service, "three", read) as three,
    ):
        for running in (one, two, three):
            started(running)
        for running in (three, one, two):
            go(running)
        assert "" == finish(one)
        assert "" == finish(two)
        assert "True\n" == finish(three)
