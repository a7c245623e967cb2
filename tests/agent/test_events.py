"""Events: what an agent's `events` chain sees, and what it may do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.engine import registry
from flowrt.engine.block import Block, Settings
from flowrt.engine.run import Run
from flowrt.message import Message, Outcome
from flowrt.testing import FakeMessagesAPI, FakeReply
from tests.services import agent, load, say

CALL = FakeReply(tool_calls=[{"name": "echo", "id": "c1", "input": {"x": 1}}])


class Collector:
    """What the block type `collect` has seen."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.stop_on = ""
        self.fail_on = ""

    @property
    def kinds(self) -> list[str]:
        return [message.body["type"] for message in self.messages]


@pytest.fixture
def seen() -> Collector:
    collector = Collector()

    class Collect(Block[Settings]):
        Settings = Settings

        async def run(self, message: Message, run: Run) -> Message:
            collector.messages.append(message)
            message.stop = message.body["type"] == collector.stop_on
            if message.body["type"] == collector.fail_on:
                raise ValueError("no")
            message.set("leaked", True)
            return message

    registry.blocks.add("collect", Collect)
    return collector


def watched(api: FakeMessagesAPI, **settings: Any) -> dict[str, Any]:
    return agent(api.base_url, events={"process": [{"type": "collect"}]}, **settings)


async def test_the_chain_sees_every_event_of_a_run_in_its_order(
    api: FakeMessagesAPI, tmp_path: Path, seen: Collector
) -> None:
    api.add(CALL, "done")
    async with load(tmp_path, watched(api)) as service:
        result = await service.invoke("chat", say("hi"), {"mine": 1})
    assert [
        "turn_start",
        "turn_end",
        "tool_call",
        "tool_result",
        "turn_start",
        "turn_end",
        "done",
    ] == seen.kinds
    assert [1, 1, 1, 1, 2, 2, 2] == [message.body["iteration"] for message in seen.messages]
    call, answer = seen.messages[2].body, seen.messages[3].body
    assert ("echo", "c1", {"x": 1}) == (call["tool"], call["toolCallId"], call["input"])
    assert ({"x": 1}, False) == (answer["output"], answer["isError"])
    assert all(1 == message.vars["mine"] for message in seen.messages)
    assert result.message is not None
    assert "leaked" not in result.message.vars


async def test_only_what_is_asked_for_is_told(
    api: FakeMessagesAPI, tmp_path: Path, seen: Collector
) -> None:
    api.add(CALL, "done")
    async with load(tmp_path, watched(api, emit=["tool_call", "done"])) as service:
        await service.invoke("chat", say("hi"))
    assert ["tool_call", "done"] == seen.kinds


async def test_a_streamed_reply_comes_in_pieces_before_its_turn_ends(
    api: FakeMessagesAPI, tmp_path: Path, seen: Collector
) -> None:
    text = "a reply that is long enough for several pieces"
    api.add(text)
    async with load(tmp_path, watched(api, stream=True)) as service:
        await service.invoke("chat", say("hi"))
    pieces = [m.body["text"] for m in seen.messages if m.body["type"] == "text"]
    assert len(pieces) > 1
    assert text == "".join(pieces)
    assert ["turn_end", "done"] == seen.kinds[-2:]


async def test_a_failing_chain_is_logged_and_the_run_goes_on(
    api: FakeMessagesAPI,
    tmp_path: Path,
    seen: Collector,
    capsys: pytest.CaptureFixture[str],
) -> None:
    api.add("done")
    seen.fail_on = "turn_start"
    async with load(tmp_path, watched(api)) as service:
        result = await service.invoke("chat", say("hi"))
    assert Outcome.COMPLETED == result.outcome
    line = json.loads(capsys.readouterr().err.splitlines()[0])
    assert ("an events chain failed", "turn_start") == (line["event"], line["event_type"])


async def test_a_stop_from_the_chain_ends_the_run(
    api: FakeMessagesAPI, tmp_path: Path, seen: Collector
) -> None:
    api.add(CALL, "never asked")
    seen.stop_on = "tool_result"
    async with load(tmp_path, watched(api)) as service:
        result = await service.invoke("chat", say("hi"))
    assert Outcome.STOPPED == result.outcome
    assert 1 == len(api.requests)


async def test_a_failed_call_is_an_error_event(
    api: FakeMessagesAPI, tmp_path: Path, seen: Collector
) -> None:
    api.add(FakeReply(error=400, message="bad"))
    async with load(tmp_path, watched(api)) as service:
        await service.invoke("chat", say("hi"))
    assert "error" == seen.kinds[-1]
    assert "bad" in seen.messages[-1].body["error"]


async def test_a_guardrail_event_gives_the_reason(
    api: FakeMessagesAPI, tmp_path: Path, seen: Collector
) -> None:
    api.add(FakeReply(text="no", stop_reason="refusal"))
    async with load(tmp_path, watched(api, default={"process": []})) as service:
        await service.invoke("chat", say("hi"))
    assert "the model refused" == seen.messages[-1].body["reason"]
