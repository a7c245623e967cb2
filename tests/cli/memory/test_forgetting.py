"""`flowrt memory clear` and `forget`."""

from __future__ import annotations

from pathlib import Path

from flowrt.testing.replies import FakeReply
from tests.cli.memory.conftest import Memory

SECRET = "the-purple-elephant"


def _bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("state.db*")))


async def test_clear_removes_turns_and_context_and_never_the_facts(any_memory: Memory) -> None:
    memory = any_memory
    await memory.talk(("t", "ann", "Hi.", "Hello."), ("u", "ann", "Hi.", "Hello."))
    await memory.put("city", "Berlin")
    for cleared in (True, False):
        report = memory.json("clear", "--thread", "t", "--agent", "helper")
        assert {"thread": "t", "cleared": cleared} == {
            key: report[key] for key in ("thread", "cleared")
        }
    assert ["u"] == [row["thread"] for row in memory.json("threads")]
    assert ["city"] == [row["name"] for row in memory.json("facts", "--user", "ann")]


async def test_a_forgotten_user_is_gone_and_the_others_are_not(any_memory: Memory) -> None:
    """FB-70."""
    memory = any_memory
    note = {"name": "remember", "input": {"name": "pet", "value": SECRET}}
    await memory.talk(
        ("t", "ann", f"I have {SECRET}.", [FakeReply(tool_calls=[note]), "Noted."]),
        ("u", "bob", "I have a cat.", "Good."),
    )
    await memory.put("city", "Rome", "bob")
    dry = memory.json("forget", "--user", "ann", "--dry-run")
    assert {"threads": 1, "turns": 2, "facts": 1, "vectors": 0, "contexts": 1} == {
        key: dry[key] for key in ("threads", "turns", "facts", "vectors", "contexts")
    }
    assert 2 == len(memory.json("threads"))
    done = memory.run("forget", "--user", "ann")
    assert (
        "user ann: 1 thread, 2 turns, 1 fact, 0 vectors, 1 context removed\n", ""
    ) == (done.stdout, done.stderr)  # fmt: skip
    assert ["u"] == [row["thread"] for row in memory.json("threads")]
    assert [] == memory.json("facts", "--user", "ann")
    assert ["city"] == [row["name"] for row in memory.json("facts", "--user", "bob")]
    shown = memory.json("show", "--thread", "u")
    assert 2 == len(shown["working"]["messages"])
    again = memory.json("forget", "--user", "ann")
    assert not any(again[key] for key in ("threads", "turns", "facts", "vectors", "contexts"))


async def test_the_file_does_not_hold_the_text_of_whom_it_forgot(memory: Memory) -> None:
    """FB-70."""
    note = {"name": "remember", "input": {"name": "pet", "value": SECRET}}
    said = [
        (f"t{number}", "ann", f"{SECRET} {number} " + "x" * 3000, f"{SECRET}!")
        for number in range(20)
    ]
    await memory.talk(
        *said,
        ("t", "ann", SECRET, [FakeReply(tool_calls=[note]), "Noted."]),
        *(("t", "ann", f"{SECRET} {number} " + "y" * 3000, f"{SECRET}!") for number in range(5)),
        ("u", "bob", "Hi.", "Hello."),
        contextMaxTokens=2000,
    )
    assert memory.json("show", "--thread", "t")["working"]["compactions"]
    assert SECRET.encode() in _bytes(memory.folder)
    memory.run("forget", "--user", "ann")
    assert SECRET.encode() not in _bytes(memory.folder)
    assert ["u"] == [row["thread"] for row in memory.json("threads")]


async def test_what_was_pruned_or_forgotten_is_in_no_file_either(memory: Memory) -> None:
    """The archive has what left the context, and knows of notes without having their text."""
    note = {"name": "remember", "input": {"name": f"pet {SECRET}", "value": SECRET}}
    forget = {"name": "forget", "input": {"name": f"pet {SECRET}"}}
    long = [(f"t{n % 2}", "ann", f"{n} {SECRET} " + "x" * 3000, "Yes.") for n in range(8)]
    await memory.talk(
        ("n", "ann", "Note it.", [FakeReply(tool_calls=[note]), "Noted."]),
        *long,
        ("o", "bob", "Hi.", "Hello."),
        contextMaxTokens=2000,
    )
    assert memory.json("show", "--thread", "t1", "--at", "1")["exact"]
    for thread in ("t0", "t1"):
        memory.run("clear", "--thread", thread)
    await memory.talk(("n", "ann", "Never mind.", [FakeReply(tool_calls=[forget]), "Forgot it."]))
    await memory.talk(("z", "ann", "Hello.", "Hi."))
    memory.run("clear", "--thread", "n")
    assert ["z", "o"] == [row["thread"] for row in memory.json("threads")]
    assert SECRET.encode() not in _bytes(memory.folder)


async def test_only_one_agent_may_be_made_to_forget(memory: Memory) -> None:
    await memory.talk(("t", "ann", "Hi.", "Hello."))
    await memory.talk(("t", "ann", "Hi.", "Hello."), agentId="another")
    memory.run("forget", "--user", "ann", "--agent", "another")
    assert ["helper"] == [row["agent"] for row in memory.json("threads")]


async def test_nobody_is_not_everybody(memory: Memory) -> None:
    await memory.talk(("t", "", "Hi.", "Hello."))
    refused = memory.run("forget", "--user", "")
    assert 2 == refused.returncode
    assert "nobody to forget" in refused.stderr
    assert 1 == len(memory.json("threads"))
