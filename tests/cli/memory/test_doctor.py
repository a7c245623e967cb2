"""`flowrt memory doctor`."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowrt.memory.agent_memory import archive_key, working_key
from flowrt.storage.agents.protocol import Person, Place
from flowrt.storage.tiers import Storage
from flowrt.testing.replies import FakeReply
from tests.cli.memory.conftest import Memory
from tests.services import flows


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of the store: what is in it, and when it was written."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.glob("state.db*")
    }


async def test_a_healthy_store_is_well_and_is_not_touched(any_memory: Memory) -> None:
    memory = any_memory
    note = {"name": "remember", "input": {"name": "city", "value": "Berlin"}}
    await memory.talk(
        ("t", "ann", "Hi.", [FakeReply(tool_calls=[note]), "Hello."]), ("u", "bob", "Hi.", "Hello.")
    )
    before = state(memory.folder)
    done = memory.run("doctor")
    assert (0, "all is well\n", "") == (done.returncode, done.stdout, done.stderr)
    assert before == state(memory.folder)


async def test_a_store_that_is_in_use_is_checked_too(memory: Memory) -> None:
    await memory.talk(("t", "ann", "Hi.", "Hello."))
    storage = Storage.from_urls("test", memory.storage, environ={})
    await storage.agents().touch(Place("test", "helper", "empty"))
    done = await asyncio.to_thread(memory.json, "doctor")
    await storage.close()
    assert 0 == done["faults"]
    [found] = done["findings"]
    assert ("note", "thread 'empty' of agent 'helper'", "it has no turns") == (
        found["level"], found["where"], found["what"],
    )  # fmt: skip


def test_a_file_that_is_not_there_is_not_made(memory: Memory, service_file: Any) -> None:
    service_file(flows(main=[]))
    done = memory.run("doctor")
    assert 1 == done.returncode
    assert "there is no file" in done.stdout
    assert [] == list(memory.folder.glob("state.db*"))


Break = Callable[[sqlite3.Connection], object]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda db: db.execute("PRAGMA user_version = 99"), "it has schema 99"),
        (lambda db: db.execute("PRAGMA application_id = 7"), "of another program"),
        (lambda db: db.execute("DELETE FROM turns WHERE seq = 1"), "has 2 turns, and has 1"),
        (
            lambda db: db.execute("UPDATE facts SET version = 5"),
            "its versions are [5]",
        ),
        (
            lambda db: db.execute(
                "INSERT INTO vectors (id, person, kind, model, data)"
                " SELECT 999, person, 0, x'61', x'00000000' FROM turns LIMIT 1"
            ),
            "1 vector of what is gone",
        ),
    ],
)
async def test_damage_is_found_and_left_as_it_is(memory: Memory, damage: Break, said: str) -> None:
    await memory.talk(("t", "ann", "Hi.", "Hello."))
    await memory.put("city", "Berlin")
    with sqlite3.connect(memory.folder / "state.db") as db:
        damage(db)
    db.close()
    before = state(memory.folder)
    done = memory.run("doctor")
    assert (1, True) == (done.returncode, said in done.stdout), done.stdout
    assert before == state(memory.folder)


async def test_a_file_that_is_no_database_is_said_so(memory: Memory, service_file: Any) -> None:
    service_file(flows(main=[]))
    (memory.folder / "state.db").write_bytes(b"no database" * 1000)
    done = memory.run("doctor")
    assert 1 == done.returncode
    assert "cannot be read" in done.stdout


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([b"{"], "the working context cannot be read"),
        ([b'"text"'], "the working context cannot be read"),
        ([b'{"role":"assistant","content":[{"type":"text","text":"x"}]}'], "from the user"),
    ],
)
async def test_contexts_that_cannot_be_used_are_found(
    any_memory: Memory, entries: list[bytes], said: str
) -> None:
    memory = any_memory
    await memory.talk(("t", "ann", "Hi.", "Hello."))
    storage = Storage.from_urls("test", memory.storage, environ={})
    space = storage.space("user")
    await space.rewrite(working_key("helper", "t"), entries, head={})
    await space.append(working_key("helper", "nobody/s"), [], head={})
    await space.set("agent-memory/old", 1)
    await storage.close()
    found = memory.json("doctor")
    faults = {each["where"]: each["what"] for each in found["findings"]}
    assert said in faults["thread 't' of agent 'helper'"]
    assert "the record has no such thread" in faults["thread 'nobody/s' of agent 'helper'"]
    assert "a value is where a conversation belongs" in faults["agent-memory/old"]
    assert found["faults"] == len(found["findings"]), json.dumps(found)


async def test_archives_that_cannot_be_used_and_frames_that_are_gone_are_found(
    any_memory: Memory,
) -> None:
    memory = any_memory
    await memory.talk(("t", "ann", "Hi.", "Hello."))
    storage = Storage.from_urls("test", memory.storage, environ={})
    space = storage.space("user")
    await space.append(archive_key("helper", "t"), [b"{"])
    await space.append(archive_key("helper", "nobody/s"), [b'{"role":"user","content":[]}'])
    for key in (await space.scan("agents-frames/")).keys:
        await space.delete(key.name)
    await storage.close()
    findings = memory.json("doctor")["findings"]
    found = {each["where"]: (each["level"], each["what"]) for each in findings}
    broken = found["the archive of thread 't' of agent 'helper'"]
    assert ("fault", True) == (broken[0], "cannot be read" in broken[1])
    unlisted = found["the archive of thread 'nobody/s' of agent 'helper'"]
    assert ("fault", True) == (unlisted[0], "no such thread" in unlisted[1])
    assert "note" == found["thread 't' of agent 'helper'"][0]
    memory.run("clear", "--thread", "nobody/s", "--agent", "helper")
    assert 2 == len(memory.json("doctor")["findings"])


async def test_a_fact_whose_turn_is_gone_is_only_noted(any_memory: Memory) -> None:
    memory = any_memory
    await memory.talk(("t", "ann", "Hi.", "Hello."))
    storage = Storage.from_urls("test", memory.storage, environ={})
    person = Person("test", "helper", "ann")
    await storage.agents().put_fact(person, "city", "Rome", expect=None, thread="gone", seq=3)
    await storage.close()
    done = memory.run("doctor")
    assert 0 == done.returncode
    assert "turn 3 of thread 'gone', where it comes from, is not there" in done.stdout
    assert "0 faults, 1 note" in done.stdout


def test_a_server_that_does_not_answer_is_a_fault(memory: Memory, service_file: Any) -> None:
    service_file(flows(main=[]))
    memory.storage = "redis://127.0.0.1:1/0"
    done = memory.run("doctor")
    assert 1 == done.returncode
    assert "fault: the store: " in done.stdout
