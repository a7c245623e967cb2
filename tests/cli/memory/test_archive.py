"""`flowrt memory export` and `import`."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from flowrt.memory.agent_memory import archive_key, frame_key, working_key
from flowrt.memory.archive import Names
from flowrt.storage.agents.protocol import NewTurn, Person, Place
from flowrt.storage.tiers import Storage
from flowrt.testing.replies import FakeReply
from tests.cli.memory.conftest import Memory
from tests.services import flows

IDS = ["t", "T", "..", ".", "a/b", "../../x", "", "%2E", "ä\u2028ö", "x" * 300, "x" * 301, "C:\\n"]


def files(folder: Path) -> dict[str, str]:
    """What is in a folder, by path."""
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


async def filled(url: str) -> None:
    """A store of the service `test` with odd ids, changed facts and a context that is no JSON."""
    storage = Storage.from_urls("test", url, environ={})
    record = storage.agents()
    for number, thread in enumerate(IDS):
        user = ("", "ann", "../bob")[number % 3]
        place = Place("test", IDS[number % 5], thread, user)
        await record.append_turns(
            place,
            [NewTurn("user", f"{thread}\u2028\n\x00 {number}", 3, {"a": [1.5, None]})],
        )
        await record.append_turns(place, [NewTurn("assistant", "Ünïcode 🐘"), NewTurn("user", "")])
        await record.set_title(place, f"Title {number}")
        if user:
            person = Person("test", place.agent, user)
            for value in ("one", "two", "one"):
                await record.put_fact(person, thread, value, expect=None, thread=thread, seq=1)
            await record.put_fact(person, "name", value, expect=None)
    await record.touch(Place("test", "only-touched", "t"))
    space = storage.space("user")
    entries = [b'{"role":"user","content":[{"type":"text","text":"x"}]}', b"\xff\x00", b'{"a": 1}']
    await space.append(working_key("t", "t"), entries, head={"overhead": 1, "scale": 1.25})
    await space.append(working_key("t", "of nobody"), entries[:1], head={})
    await space.append("agent-memory/old/../thread", entries[:1], head=None)
    await space.append(archive_key("t", "t"), [*entries, '{"text":"Ü\u2028"}'.encode()])
    for agent, name in (("t", "f" * 32), ("../../x", "..")):
        await space.set(frame_key(agent, name), '{"system":"Ü\u2028"}'.encode())
    await space.set(frame_key("t", "sealed"), b"\xff\x00")
    await storage.close()


@pytest.fixture
def filled_memory(any_memory: Memory, service_file: Any) -> Memory:
    service_file(flows(main=[]))
    asyncio.run(filled(any_memory.storage))
    return any_memory


@pytest.mark.parametrize("into", ["sqlite", "redis"])
def test_a_round_trip_loses_nothing(
    filled_memory: Memory, into: str, redis_url: str, tmp_path: Path
) -> None:
    memory = filled_memory
    first = memory.json("export", "one")
    assert {"threads": 13, "turns": 36, "contexts": 3} == {
        key: first[key] for key in ("threads", "turns", "contexts")
    }
    before = files(tmp_path / "one")
    listed = memory.json("threads")
    if into == "redis":
        import redis

        with redis.Redis.from_url(redis_url) as client:
            client.flushdb()
        memory.storage = redis_url
    else:
        memory.storage = f"sqlite:{tmp_path}/other.db"
    added = memory.json("import", "one")
    nothing = {"kept": 0, "leftOut": 0}
    assert {**{key: first[key] for key in added if key not in nothing}, **nothing} == added
    memory.json("export", "two")
    assert before == files(tmp_path / "two")
    without = [{key: row[key] for key in row if key != "version"} for row in memory.json("threads")]
    assert [{key: row[key] for key in row if key != "version"} for row in listed] == without


async def test_what_was_asked_at_a_turn_is_known_after_a_round_trip(any_memory: Memory) -> None:
    memory = any_memory
    said = [("t", "ann", f"{number} " + "word " * 300, "Fine.") for number in range(5)]
    note = {"name": "remember", "input": {"name": "city", "value": "Berlin"}}
    replies = [FakeReply(tool_calls=[note]), "Noted."]
    await memory.talk(("one", "ann", "Berlin.", replies), *said, contextMaxTokens=1200)
    asked = [("show", "--thread", "t", "--at", str(seq)) for seq in range(1, 11)]
    before = [memory.json(*each) for each in asked]
    assert all(each["exact"] for each in before)
    memory.run("export", "one")
    memory.storage = f"sqlite:{memory.folder}/other.db"
    memory.run("import", "one")
    assert before == [memory.json(*each) for each in asked]


async def test_a_volatile_tier_that_can_be_reached_is_exported_and_imported(
    memory: Memory, redis_url: str
) -> None:
    import redis

    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        await memory.talk(("kept", "ann", "Hi.", "Hello."))
        settings = {"memoryVolatile": True, "history": "record", "contextMaxTokens": 1200}
        said = [("t", "ann", f"{number} " + "word " * 300, "Fine.") for number in range(5)]
        await memory.talk(*said, volatile=redis_url, **settings)
        reached = {"FLOWRT_VOLATILE": redis_url}
        counts = memory.json("export", "one", **reached)
        assert (2, 12, True) == (counts["threads"], counts["turns"], counts["volatile"])
        listed = memory.json("threads", **reached)
        shown = memory.json("show", "--thread", "t", "--at", "1", **reached)
        assert shown["exact"]
        client.flushdb()
        memory.storage = f"sqlite:{memory.folder}/other.db"
        added = memory.json("import", "one", **reached)
        assert (2, 0) == (added["threads"], added["leftOut"])
        memory.json("export", "two", **reached)
        assert files(memory.folder / "one") == files(memory.folder / "two")
        tiers = [(row["thread"], row["tier"]) for row in listed]
        again = memory.json("threads", **reached)
        assert tiers == [(row["thread"], row["tier"]) for row in again]
        assert shown == memory.json("show", "--thread", "t", "--at", "1", **reached)


async def test_a_volatile_tier_that_cannot_be_reached_is_said_to_be_left_out(
    memory: Memory, redis_url: str
) -> None:
    await memory.talk(("kept", "ann", "Hi.", "Hello."))
    done = memory.run("export", "one")
    assert "the volatile tier is in the memory of a running service" in done.stderr
    assert not memory.json("export", "two")["volatile"]
    assert not (memory.folder / "one/volatile").exists()
    settings = {"memoryVolatile": True, "history": "record"}
    await memory.talk(("t", "ann", "Hi.", "Hello."), volatile=redis_url, **settings)
    memory.json("export", "three", FLOWRT_VOLATILE=redis_url)
    memory.storage = f"sqlite:{memory.folder}/other.db"
    assert 1 <= memory.json("import", "three")["leftOut"]
    assert ["kept"] == [row["thread"] for row in memory.json("threads")]


def test_no_id_leaves_the_folder_and_only_its_owner_reads_it(
    filled_memory: Memory, tmp_path: Path
) -> None:
    outside = {path for path in tmp_path.rglob("*") if path.is_file()}
    done = filled_memory.run("export", "one")
    assert "nothing in it is masked" in done.stdout
    written = {path for path in tmp_path.rglob("*") if path.is_file()} - outside
    assert all(path.is_relative_to(tmp_path / "one") for path in written)
    if os.name != "nt":
        assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in written}
        assert 0o700 == stat.S_IMODE((tmp_path / "one").stat().st_mode)


def test_names_of_ids_are_told_apart_where_the_case_is_not() -> None:
    names = Names()
    made = [names.of(each) for each in IDS]
    assert len(IDS) == len({name.casefold() for name in made})
    assert all(len(name.encode()) < 200 and "/" not in name and "\\" not in name for name in made)
    assert not {"", ".", ".."} & set(made)


async def test_an_export_keeps_what_the_screen_masks(memory: Memory) -> None:
    key = "sk-" + "a" * 30
    await memory.talk(("t", "ann", f"It is {key}.", "Fine."))
    memory.run("export", "one")
    turns = memory.folder / "one/agents/helper/threads/t/turns.jsonl"
    said = [json.loads(line) for line in turns.read_text(encoding="utf-8").splitlines()]
    assert f"It is {key}." == said[0]["text"]
    assert key not in memory.run("show", "--thread", "t").stdout
    assert key not in memory.run("show", "--thread", "t", "--json").stdout


async def test_nothing_is_written_over(memory: Memory) -> None:
    await memory.talk(("t", "ann", "Hi.", "Hello."))
    memory.run("export", "one")
    again = memory.run("export", "one")
    assert (2, True) == (again.returncode, "is not empty" in again.stderr)
    refused = memory.run("import", "one")
    assert 2 == refused.returncode
    assert "has thread 't' already, and nothing was imported" in refused.stderr
    assert 2 == memory.json("threads")[0]["turns"]


async def test_a_merge_adds_what_is_missing_and_leaves_the_rest(memory: Memory) -> None:
    note = {"name": "remember", "input": {"name": "city", "value": "Berlin"}}
    await memory.talk(
        ("t", "ann", "Hi.", [FakeReply(tool_calls=[note]), "Hello."]), ("u", "ann", "Hi.", "Hello.")
    )
    memory.run("export", "one")
    memory.run("clear", "--thread", "u")
    await memory.talk(("t", "ann", "And?", "Yes."))
    await memory.put("city", "Rome")
    added = memory.json("import", "one", "--merge")
    assert {"threads": 1, "turns": 2, "contexts": 1, "facts": 0, "kept": 3, "leftOut": 0} == added
    assert {"t": 4, "u": 2} == {row["thread"]: row["turns"] for row in memory.json("threads")}
    assert ["Rome"] == [row["value"] for row in memory.json("facts", "--user", "ann")]
    assert 0 == memory.json("import", "one", "--merge")["turns"]


async def test_an_import_that_was_cut_off_is_completed(memory: Memory) -> None:
    await memory.talk(("t", "ann", "One.", "1"), ("t", "ann", "Two.", "2"))
    await memory.put("city", "Rome")
    await memory.put("city", "Berlin")
    memory.run("export", "one")
    memory.storage = f"sqlite:{memory.folder}/other.db"
    storage = Storage.from_urls("test", memory.storage, environ={})
    place = Place("test", "helper", "t", "ann")
    await storage.agents().append_turns(place, [NewTurn("user", "One.")])
    await storage.agents().put_fact(Person("test", "helper", "ann"), "city", "Rome", expect=None)
    await storage.close()
    added = memory.json("import", "one", "--merge")
    assert (3, 1, 1) == (added["turns"], added["facts"], added["contexts"])
    assert ["One.", "1", "Two.", "2"] == [
        turn["text"] for turn in memory.json("show", "--thread", "t")["record"]
    ]
    assert ["Berlin"] == [row["value"] for row in memory.json("facts", "--user", "ann")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("memory.json", "", "not valid JSON"),
        ("memory.json", '{"format": 2, "service": "test"}', "format"),
        ("agents/helper/threads/t/turns.jsonl", '{"seq": 1}', "turns.jsonl:1: role"),
        ("agents/helper/threads/t/thread.json", "{}", "thread.json: agent"),
    ],
)
async def test_a_file_that_is_wrong_is_named_and_nothing_is_imported(
    memory: Memory, name: str, text: str, said: str
) -> None:
    await memory.talk(("t", "ann", "Hi.", "Hello."))
    memory.run("export", "one")
    (memory.folder / "one" / name).write_text(text, encoding="utf-8")
    memory.storage = f"sqlite:{memory.folder}/other.db"
    done = memory.run("import", "one")
    assert (2, True) == (done.returncode, said in done.stderr), done.stderr
    assert [] == memory.json("threads")


def test_a_folder_that_is_no_export_is_refused(memory: Memory, service_file: Any) -> None:
    service_file(flows(main=[]))
    done = memory.run("import", ".")
    assert (2, True) == (done.returncode, "has no memory.json" in done.stderr)
