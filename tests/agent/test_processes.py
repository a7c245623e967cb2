"""Several processes on one conversation, and processes that are killed in the middle of it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from flowrt.memory.entry import Entry
from flowrt.memory.transcript import Thread, Transcript
from flowrt.storage.tiers import Storage
from tests.agent.remembering import AGENT, Kept
from tests.services import ECHO_TOOL, agent

ROOT = Path(__file__).parent.parent.parent


def scripted(**settings: Any) -> dict[str, Any]:
    """The chat of `tests.services` on a scripted model: a tool round, then an answer."""
    document = agent("", tools=[ECHO_TOOL], **settings)
    last = "request.messages[request.messages.size() - 1].content[0]"
    document["connectors"] = [
        {
            "name": "claude",
            "type": "llm-scripted",
            "settings": {
                "replies": [
                    {
                        "when": f'{last}.type == "text"',
                        "toolCalls": [{"name": "echo", "input": {"x": "y" * 200}}],
                    },
                    {"when": "true", "text": "answered"},
                ]
            },
        }
    ]
    return document


def start(config: Path, storage: str, thread: str, count: int, mode: str) -> subprocess.Popen[str]:
    arguments = [str(config), storage, thread, str(count), mode]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.agent.conversing", *arguments],
        cwd=ROOT,
        env={**os.environ, "LOG_LEVEL": "error"},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(params=["sqlite", "redis"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/state.db"
    url: str = request.getfixturevalue("redis_url")
    return url


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "chat.yaml"
    path.write_text(yaml.safe_dump(scripted()), encoding="utf-8")
    return path


async def stored(storage: str, thread: str) -> Transcript:
    tiers = Storage.from_urls("test", storage, environ={})
    try:
        return await Thread(tiers.space("user"), thread).load()
    finally:
        await tiers.close()


def whole_exchanges(entries: list[Entry]) -> list[str]:
    """The questions of a transcript, having checked that each exchange is whole."""
    assert 0 == len(entries) % 4
    questions = []
    for at in range(0, len(entries), 4):
        question, call, result, answer = (entry.message for entry in entries[at : at + 4])
        assert ["user", "assistant", "user", "assistant"] == [
            message["role"] for message in (question, call, result, answer)
        ]
        assert call["content"][0]["id"] == result["content"][0]["tool_use_id"]
        assert "answered" == answer["content"][0]["text"]
        questions.append(question["content"][0]["text"])
    return questions


async def test_messages_from_three_processes_are_all_in_the_transcript_each_whole(
    config: Path, storage: str
) -> None:
    """FB-40."""
    running = [start(config, storage, "shared", count, "together") for count in (9, 8, 8)]
    printed = [process.communicate(timeout=100)[0].splitlines() for process in running]
    assert [0, 0, 0] == [process.returncode for process in running]
    questions = whole_exchanges((await stored(storage, "shared")).entries)
    assert 25 == len(questions)
    assert sorted(line for lines in printed for line in lines) == sorted(questions)


async def recorded(storage: str, thread: str) -> list[tuple[int, str, str]]:
    """The record of a thread: number, role and text of each turn."""
    kept = Kept.at(storage)
    try:
        return [(turn.seq, turn.role, turn.text) for turn in await kept.turns(thread)]
    finally:
        await kept.close()


def questions_of(turns: list[tuple[int, str, str]]) -> list[str]:
    """The questions of a record, having checked that each pair is together and none is missing."""
    assert list(range(1, len(turns) + 1)) == [seq for seq, _, _ in turns]
    assert ["user", "assistant"] * (len(turns) // 2) == [role for _, role, _ in turns]
    assert {"answered"} == {text for _, role, text in turns if role == "assistant"}
    return [text for _, role, text in turns if role == "user"]


@pytest.fixture
def remembering_config(tmp_path: Path) -> Path:
    path = tmp_path / "remembering.yaml"
    path.write_text(yaml.safe_dump(scripted(agentId=AGENT)), encoding="utf-8")
    return path


async def test_messages_from_three_processes_are_all_on_the_record_each_with_its_answer(
    remembering_config: Path, storage: str
) -> None:
    """FB-40 and FB-71: the order is the store's."""
    running = [
        start(remembering_config, storage, "shared-record", count, "together")
        for count in (9, 8, 8)
    ]
    printed = [process.communicate(timeout=100)[0].splitlines() for process in running]
    assert [0, 0, 0] == [process.returncode for process in running]
    questions = questions_of(await recorded(storage, "shared-record"))
    assert sorted(line for lines in printed for line in lines) == sorted(questions)
    kept = Kept.at(storage)
    working = [json.loads(entry) for entry in await kept.working("shared-record")]
    await kept.close()
    assert 100 == len(working)
    assert questions == [entry["content"][0]["text"] for entry in working[::4]]


async def test_agents_of_four_processes_keep_turns_notes_and_contexts_at_once(
    tmp_path: Path, storage: str
) -> None:
    """FB-48: writes wait for each other, none fails, and reads go on meanwhile."""
    document = scripted(agentId=AGENT, userId='"ann"', userMemory=True)
    calls = document["connectors"][0]["settings"]["replies"][0]["toolCalls"]
    calls += [
        {"name": "remember", "input": {"name": f"n{number}", "value": "v" * 2000}}
        for number in range(3)
    ]
    config = tmp_path / "noting.yaml"
    config.write_text(yaml.safe_dump(document), encoding="utf-8")
    threads = [f"locked-{number}" for number in range(4)]
    running = [start(config, storage, thread, 10, "together") for thread in threads]
    kept = Kept.at(storage)
    while any(process.poll() is None for process in running):
        for thread in threads:
            read = [turn.seq for turn in await kept.turns(thread)]
            assert list(range(1, len(read) + 1)) == read
    facts = await kept.facts()
    await kept.close()
    assert [0] * 4 == [process.returncode for process in running]
    assert ["n0", "n1", "n2"] == sorted(fact.name for fact in facts)
    for process, thread in zip(running, threads, strict=True):
        said = process.communicate()[0].splitlines()
        assert 10 == len(said)
        assert sorted(said) == sorted(questions_of(await recorded(storage, thread)))


@pytest.mark.parametrize("seed", range(10))
async def test_a_killed_process_loses_nothing_of_the_record_that_was_acknowledged(
    remembering_config: Path, storage: str, seed: int
) -> None:
    moment = random.Random(seed)
    thread = f"killed-record-{seed}"
    with start(remembering_config, storage, thread, 10_000, "forever") as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline().strip() for _ in range(moment.randrange(1, 12))]
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(moment.uniform(0, 0.02))
        process.kill()
        acknowledged += [line.strip() for line in process.stdout.read().splitlines()]
    questions = questions_of(await recorded(storage, thread))
    assert acknowledged == questions[: len(acknowledged)]
    assert len(questions) - len(acknowledged) <= 1


@pytest.mark.parametrize("seed", range(25))
async def test_a_killed_process_loses_nothing_that_was_acknowledged(
    config: Path, storage: str, seed: int
) -> None:
    moment = random.Random(seed)
    thread = f"killed-{seed}"
    with start(config, storage, thread, 10_000, "forever") as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline().strip() for _ in range(moment.randrange(1, 12))]
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(moment.uniform(0, 0.02))
        process.kill()
        acknowledged += [line.strip() for line in process.stdout.read().splitlines()]
    questions = whole_exchanges((await stored(storage, thread)).entries)
    assert acknowledged == questions[: len(acknowledged)]
    assert len(questions) - len(acknowledged) <= 1


async def test_the_next_message_after_a_kill_does_not_wait(config: Path, tmp_path: Path) -> None:
    storage = f"sqlite:{tmp_path}/state.db"
    with start(config, storage, "t", 10_000, "forever") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    after = start(config, storage, "t", 1, "together")
    assert "message" in after.communicate(timeout=30)[0]
    assert 0 == after.returncode
