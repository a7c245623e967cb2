"""Runs that die, and what the next one finds of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from flowrt.clock import SystemClock
from flowrt.memory.transcript import Thread
from flowrt.testing import FakeMessagesAPI, FakeReply, Gate
from tests.agent.conftest import Hold
from tests.agent.remembering import AGENT, Kept, remembering, say
from tests.services import ECHO_TOOL, load, texts

ROOT = Path(__file__).parent.parent.parent
DIE = {"name": "die", "description": "dies", "process": [{"type": "die"}]}
WAIT = {"name": "wait", "description": "waits", "process": [{"type": "hold"}]}
ECHO = FakeReply(tool_calls=[{"name": "echo", "input": {"x": 1}}])


class StoppedClock(SystemClock):
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at


@pytest.fixture(params=["sqlite", "redis"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/state.db"
    url: str = request.getfixturevalue("redis_url")
    return url


def die(folder: Path, document: dict[str, Any], storage: str, body: Any, *when: str) -> None:
    """Send a message to a process of its own that does not survive it."""
    config = folder / "dying.yaml"
    config.write_text(yaml.safe_dump(document), encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "tests.agent.dying", str(config), storage, json.dumps(body), *when],
        cwd=ROOT,
        env={**os.environ, "LOG_LEVEL": "error"},
        timeout=60,
        check=False,
    )
    assert -signal.SIGKILL == ended.returncode


def blocks(message: dict[str, Any]) -> list[str]:
    return [block["type"] for block in message["content"]]


async def test_the_message_after_a_death_goes_on_from_the_checkpoint(
    api: FakeMessagesAPI, tmp_path: Path, storage: str
) -> None:
    """FB-04."""
    thread = "died"
    deadly = FakeReply(tool_calls=[{"name": "echo", "id": "c2"}, {"name": "die", "id": "c3"}])
    api.add("Hello.", ECHO, deadly, "I was cut off.")
    document = remembering(api.base_url, tools=[ECHO_TOOL, DIE])
    async with load(tmp_path, remembering(api.base_url), storage) as service:
        await service.invoke("chat", say("hi", thread))
    die(tmp_path, document, storage, say("work", thread))
    async with load(tmp_path, remembering(api.base_url), storage) as service:
        await service.invoke("chat", say("what happened?", thread))
        turns = await Kept.of(service).turns(thread)
    messages = api.requests[-1].messages
    assert [
        ["text"],
        ["text"],
        ["text"],
        ["tool_use"],
        ["tool_result"],
        ["tool_use", "tool_use"],
        ["tool_result", "tool_result", "text"],
    ] == [blocks(message) for message in messages]
    assert all("interrupted" in block["content"] for block in messages[-1]["content"][:2])
    assert ["what happened?"] == texts(messages[-1])
    assert ["hi", "Hello.", "work", "what happened?", "I was cut off."] == [
        turn.text for turn in turns
    ]
    assert {"unanswered": True, "stopReason": "interrupted"} == turns[2].attrs
    assert [1, 2, 3, 4, 5] == [turn.seq for turn in turns]


async def test_an_agent_that_resumes_first_finishes_the_run_that_died(
    api: FakeMessagesAPI, tmp_path: Path, storage: str
) -> None:
    thread = "resumed"
    api.add(
        FakeReply(tool_calls=[{"name": "die", "id": "c1"}]), "Work is done.", "You are welcome."
    )
    document = remembering(api.base_url, tools=[DIE], resumeInterrupted=True)
    die(tmp_path, document, storage, say("work", thread))
    alive = remembering(api.base_url, resumeInterrupted=True)
    async with load(tmp_path, alive, storage) as service:
        result = await service.invoke("chat", say("thanks", thread))
        said = await Kept.of(service).said(thread)
    assert result.message is not None
    assert "You are welcome." == result.message.body
    finishing, answering = api.requests[1:]
    assert [["text"], ["tool_use"], ["tool_result"]] == [blocks(m) for m in finishing.messages]
    assert ["Work is done."] == texts(answering.messages[-2])
    assert ["thanks"] == texts(answering.messages[-1])
    assert [
        ("user", "work"),
        ("assistant", "Work is done."),
        ("user", "thanks"),
        ("assistant", "You are welcome."),
    ] == said


async def test_a_dead_run_that_cannot_be_finished_does_not_hold_the_thread(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    storage = f"sqlite:{tmp_path}/s.db"
    api.add(
        FakeReply(tool_calls=[{"name": "die", "id": "c1"}]), FakeReply(error=400), "Fine.", "Yes."
    )
    document = remembering(api.base_url, tools=[DIE], resumeInterrupted=True)
    die(tmp_path, document, storage, say("work"))
    alive = remembering(api.base_url, resumeInterrupted=True)
    async with load(tmp_path, alive, storage) as service:
        await service.invoke("chat", say("hello?"))
        await service.invoke("chat", say("there?"))
        turns = await Kept.of(service).turns()
    assert ["work", "hello?", "Fine.", "there?", "Yes."] == [turn.text for turn in turns]
    assert "failed" == turns[0].attrs["stopReason"]


async def test_a_checkpoint_waits_until_two_seconds_have_passed(
    api: FakeMessagesAPI, tmp_path: Path, held: Hold
) -> None:
    clock = StoppedClock()
    call = FakeReply(tool_calls=[{"name": "wait"}])
    gate = Gate()
    later = FakeReply(tool_calls=[{"name": "wait"}], hold=gate)
    api.add(call, "Done.", ECHO, later, "Done.")
    document = remembering(api.base_url, tools=[WAIT, ECHO_TOOL])
    async with load(tmp_path, document, clock=clock) as service:
        run = asyncio.ensure_future(service.invoke("chat", say("a")))
        await asyncio.wait_for(held.reached.wait(), 20)
        assert [] == await Kept.of(service).working()
        held.opened.set()
        await run
        held.reached.clear()
        held.opened.clear()
        kept = len(await Kept.of(service).working())
        run = asyncio.ensure_future(service.invoke("chat", say("b")))
        await gate.reached()
        assert kept == len(await Kept.of(service).working())
        clock.at += 2.0
        gate.open()
        await asyncio.wait_for(held.reached.wait(), 20)
        assert kept + 4 == len(await Kept.of(service).working())
        held.opened.set()
        await run
        assert 10 == len(await Kept.of(service).working())


async def test_a_checkpoint_does_not_wait_where_there_is_much_to_store(
    api: FakeMessagesAPI, tmp_path: Path, held: Hold
) -> None:
    api.add(FakeReply(tool_calls=[{"name": "wait", "id": "c1", "input": {"x": "y" * 70_000}}]), "k")
    document = remembering(api.base_url, tools=[WAIT])
    async with load(tmp_path, document, clock=StoppedClock()) as service:
        run = asyncio.ensure_future(service.invoke("chat", say("a")))
        await asyncio.wait_for(held.reached.wait(), 20)
        assert 2 == len(await Kept.of(service).working())
        held.opened.set()
        await run


async def test_without_an_agent_id_a_run_is_saved_once_at_its_end(
    api: FakeMessagesAPI, tmp_path: Path, held: Hold
) -> None:
    api.add(FakeReply(tool_calls=[{"name": "wait", "id": "c1", "input": {"x": "y" * 70_000}}]), "k")
    document = remembering(api.base_url, agentId=None, userId=None, tools=[WAIT])
    async with load(tmp_path, document) as service:
        run = asyncio.ensure_future(service.invoke("chat", say("a")))
        await asyncio.wait_for(held.reached.wait(), 20)
        thread = Thread(service.storage.space("user"), "t")
        assert 0 == (await thread.load()).version
        held.opened.set()
        await run
        assert 1 == (await thread.load()).version


@pytest.mark.parametrize("cleared", [False, True])
async def test_what_somebody_else_wrote_meanwhile_stays_and_the_exchange_stays_whole(
    api: FakeMessagesAPI, tmp_path: Path, held: Hold, cleared: bool
) -> None:
    """FB-40: a version that has moved is written on top of, never over."""
    clock = StoppedClock()
    gate = Gate()
    api.add("one", ECHO, FakeReply(tool_calls=[{"name": "wait"}], hold=gate), "done", "and?")
    document = remembering(api.base_url, tools=[WAIT, ECHO_TOOL])
    async with load(tmp_path, document, clock=clock) as service:
        await service.invoke("chat", say("before"))
        run = asyncio.ensure_future(service.invoke("chat", say("mine")))
        await gate.reached()
        clock.at += 2.0
        gate.open()
        await asyncio.wait_for(held.reached.wait(), 20)
        assert 6 == len(await Kept.of(service).working())
        space, key = service.storage.space("user"), f"agents/{AGENT}/t"
        if cleared:
            await service.invoke("forget", say(""))
        else:
            other = [
                b'{"role":"user","content":[{"type":"text","text":"theirs"}]}',
                b'{"role":"assistant","content":[{"type":"text","text":"answered"}]}',
            ]
            await space.append(key, other)
        held.opened.set()
        await run
        log = await space.read_log(key)
        assert log is not None
        entries = [json.loads(entry) for entry in log.entries]
        await service.invoke("chat", say("next"))
    shown = [texts(entry) for entry in entries]
    mine = [["mine"], [], [], [], [], ["done"]]
    before = [["before"], ["one"], ["theirs"], ["answered"]]
    assert (mine if cleared else before + mine) == shown


async def test_a_run_of_many_checkpoints_writes_each_entry_once(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-44."""
    api.add(*[ECHO] * 7, "done")
    document = remembering(api.base_url)

    class HastyClock(StoppedClock):
        def monotonic(self) -> float:
            self.at += 3
            return self.at

    async with load(tmp_path, document, clock=HastyClock()) as service:
        await service.invoke("chat", say("work"))
        log = await service.storage.space("user").read_log(f"agents/{AGENT}/t")
    assert log is not None
    assert (16, 1) == (len(log.entries), log.generation)
    assert 15 == log.version


async def test_a_run_may_be_cancelled_at_any_step_and_its_question_is_on_the_record_once(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-42: also in a checkpoint, the save and the release."""
    api.reply = lambda body: (
        {"toolCalls": [{"name": "remember", "input": {"name": "a", "value": "b"}}]}
        if body["messages"][-1]["content"][-1]["type"] == "text"
        else {"text": "Fine."}
    )
    asked = []
    document = remembering(api.base_url, userMemory=True)
    async with load(tmp_path, document, f"sqlite:{tmp_path}/s.db") as service:
        for steps in range(0, 160, 4):
            run = asyncio.ensure_future(service.invoke("chat", say(f"cut {steps}")))
            for _ in range(steps):
                await asyncio.sleep(0)
            run.cancel()
            await asyncio.wait({run})
            asked.append(f"cut {steps}")
        await asyncio.wait_for(service.invoke("chat", say("last")), 20)
        turns = await Kept.of(service).turns()
    questions = [turn.text for turn in turns if turn.role == "user"]
    assert "last" == questions[-1]
    assert len(set(questions)) == len(questions)
    assert [text for text in asked if text in questions] == questions[:-1]
    for at, turn in enumerate(turns):
        answered = at + 1 < len(turns) and turns[at + 1].role == "assistant"
        if turn.role == "user":
            assert answered != turn.attrs.get("unanswered", False)
    assert [200] * len(api.requests) == [request.status or 200 for request in api.requests]
