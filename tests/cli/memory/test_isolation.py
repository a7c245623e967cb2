"""`flowrt memory` shows of one user and thread what is theirs, whatever they are called."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowrt.memory.agent_memory import working_key
from flowrt.storage.agents.protocol import NewTurn, Person, Place
from flowrt.storage.tiers import Storage
from tests.cli.memory.conftest import Memory
from tests.services import flows

AGENT = "helper"
IDS = [
    "ann",
    "Ann",
    "ann ",
    "ann%",
    "*",
    "_",
    "../ann",
    "ann/threads",
    "helper/ann",
    "\uff41nn",
    "a\u0301nn",
    "\u00e1nn",
    "--json",
    "x" * 10_000,
]


ASKED = ("ann", "ann%", "../ann", "--json")
"""Each question is a process; what answers all of them is tried with every id beside the agent."""


async def fill(url: str) -> None:
    """A thread, a working context and a fact of each; each says its number and nobody else's."""
    storage = Storage.from_urls("test", url, environ={})
    for at, name in enumerate(IDS):
        place, mark = Place("test", AGENT, name, name), f"secret-{at}."
        await storage.agents().append_turns(place, [NewTurn("user", f"plum {mark}")])
        await storage.agents().put_fact(Person("test", AGENT, name), "pet", mark, expect=0)
        entry = {"role": "user", "content": [{"type": "text", "text": f"plum {mark}"}]}
        key = working_key(AGENT, name)
        await storage.space("user").append(key, [json.dumps(entry).encode()], head={})
    await storage.close()


def marks(shown: Any) -> set[int]:
    """Whose secrets are in what was printed."""
    text = json.dumps(shown)
    return {at for at in range(len(IDS)) if f"secret-{at}." in text}


async def test_every_command_gives_what_is_asked_for_and_nothing_of_others(
    any_memory: Memory, service_file: Callable[[dict[str, object]], Path]
) -> None:
    memory = any_memory
    service_file(flows(main=[]))
    await fill(memory.storage)
    for name in ASKED:
        at = IDS.index(name)
        assert {at} == marks(memory.json("show", f"--thread={name}")), name
        assert {at} == marks(memory.json("facts", f"--user={name}")), name
        assert {at} == marks(memory.json("search", "plum secret pet", f"--user={name}")), name
        assert {at} == marks(memory.json("why", "pet", f"--user={name}")), name
        assert [name] == [row["thread"] for row in memory.json("threads", f"--user={name}")]
    for name in ("", "%", "ANN"):
        assert set() == marks(memory.json("facts", f"--user={name}")), name
        assert set() == marks(memory.json("search", "plum secret", f"--user={name}")), name
        assert [] == memory.json("threads", f"--user={name}"), name


async def test_an_export_has_each_in_a_file_of_their_own(
    memory: Memory, service_file: Callable[[dict[str, object]], Path]
) -> None:
    service_file(flows(main=[]))
    await fill(memory.storage)
    memory.json("export", "out")
    users = sorted((memory.folder / "out" / "agents" / AGENT / "users").glob("*.json"))
    threads = sorted((memory.folder / "out" / "agents" / AGENT / "threads").glob("*"))
    assert len(IDS) == len(users) == len(threads)
    for path in users:
        file = json.loads(path.read_text(encoding="utf-8"))
        assert {IDS.index(file["user"])} == marks(file)
    for folder in threads:
        thread = json.loads((folder / "thread.json").read_text(encoding="utf-8"))
        files = [path.read_text(encoding="utf-8") for path in folder.iterdir()]
        assert {IDS.index(thread["thread"])} == marks(files)


@pytest.mark.parametrize(
    "command",
    [
        ("show", b"--thread=ann\xff"),
        ("facts", b"--user=ann\xff"),
        ("search", "plum", b"--user=ann\xff"),
        ("threads", b"--user=ann\xff"),
        ("why", "pet", b"--user=ann\xff"),
        ("clear", b"--thread=ann\xff"),
        ("forget", b"--user=ann\xff"),
    ],
)
async def test_an_argument_that_is_no_text_finds_nothing_and_removes_nothing(
    memory: Memory, service_file: Callable[[dict[str, object]], Path], command: tuple[Any, ...]
) -> None:
    service_file(flows(main=[]))
    await fill(memory.storage)
    done = memory.run(*command, "--json")
    assert "Traceback" not in done.stderr
    assert "internal" not in done.stderr
    assert set() == marks(done.stdout)
    assert len(IDS) == len(memory.json("threads"))
