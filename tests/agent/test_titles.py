"""What a conversation is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.engine import registry
from flowrt.engine.block import Block, Settings
from flowrt.engine.run import Run
from flowrt.message import Message
from flowrt.testing import FakeMessagesAPI, FakeReply
from tests.agent.remembering import Kept, remembering, say
from tests.services import load


class Namer:
    """What the block type `name-it` has seen, and what it gives."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.answer: Any = None


@pytest.fixture
def namer() -> Namer:
    state = Namer()

    class NameIt(Block[Settings]):
        Settings = Settings

        async def run(self, message: Message, run: Run) -> Message | None:
            state.messages.append(message.clone())
            if isinstance(state.answer, Exception):
                raise state.answer
            if state.answer == "dropped":
                return None
            message.body = state.answer
            message.set("leaked", True)
            return message

    registry.blocks.add("name-it", NameIt)
    return state


NAMING = {"process": [{"type": "name-it"}]}


async def test_the_chain_names_a_conversation_once_from_its_opening_exchange(
    api: FakeMessagesAPI, tmp_path: Path, namer: Namer
) -> None:
    api.add("You can.", "Yes.")
    namer.answer = "Refunds"
    document = remembering(api.base_url, nameThread=NAMING)
    async with load(tmp_path, document) as service:
        result = await service.invoke("chat", say("May I return it?"), {"mine": 1})
        await service.invoke("chat", say("Sure?"))
        thread = await Kept.of(service).thread()
    assert thread is not None
    assert "Refunds" == thread.title
    assert 1 == len(namer.messages)
    seen = namer.messages[0]
    assert {
        "threadKey": "t",
        "agentId": "helper",
        "userId": "ann",
        "question": "May I return it?",
        "answer": "You can.",
    } == seen.body
    assert 1 == seen.vars["mine"]
    assert result.message is not None
    assert "You can." == result.message.body
    assert "leaked" not in result.message.vars


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ({"title": "From a map"}, "From a map"),
        ({"name": "From a name"}, "From a name"),
        ("  spaced\tout \nand a second line", "spaced out"),
        ("x" * 100, "x" * 79 + "…"),
        ("", ""),
        ("dropped", ""),
        ({"other": 1}, ""),
        (7, ""),
        (ValueError("no"), "May I return it?"),
    ],
)
async def test_what_the_chain_gives_becomes_a_title_or_none(
    api: FakeMessagesAPI, tmp_path: Path, namer: Namer, answer: Any, title: str
) -> None:
    api.add("You can.")
    namer.answer = answer
    async with load(tmp_path, remembering(api.base_url, nameThread=NAMING)) as service:
        await service.invoke("chat", say("May I return it?\nPlease."))
        thread = await Kept.of(service).thread()
    assert thread is not None
    assert title == thread.title


async def test_without_a_chain_or_an_answer_it_is_the_question_cut_short(
    api: FakeMessagesAPI, tmp_path: Path, namer: Namer
) -> None:
    api.add("ok", FakeReply(text="no", stop_reason="refusal"))
    question = "ä" * 100
    async with load(tmp_path, remembering(api.base_url)) as service:
        await service.invoke("chat", say(question))
        thread = await Kept.of(service).thread()
    document = remembering(api.base_url, nameThread=NAMING, default={"process": []})
    async with load(tmp_path, document) as service:
        await service.invoke("chat", say("refused", "another"))
        another = await Kept.of(service).thread("another")
    assert thread is not None
    assert "ä" * 79 + "…" == thread.title
    assert another is not None
    assert "refused" == another.title
    assert [] == namer.messages


async def test_a_conversation_without_a_record_has_no_title(
    api: FakeMessagesAPI, tmp_path: Path, namer: Namer
) -> None:
    api.add("ok")
    document = remembering(api.base_url, nameThread=NAMING, history="off")
    async with load(tmp_path, document) as service:
        await service.invoke("chat", say("hi"))
        thread = await Kept.of(service).thread()
    assert thread is not None
    assert "" == thread.title
    assert [] == namer.messages


async def test_watchers_are_told_the_title_once_it_is_stored(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add("ok")

    class Watching:
        delta = None

        def __init__(self) -> None:
            self.events: list[dict[str, Any]] = []

        def event(self, event: dict[str, Any]) -> None:
            self.events.append(event)

    watcher = Watching()
    async with load(tmp_path, remembering(api.base_url)) as service:
        await service.invoke("chat", say("hello"), watcher=watcher)
    assert ["turn_start", "turn_end", "done", "thread_title"] == [
        event["type"] for event in watcher.events
    ]
    assert {"type": "thread_title", "iteration": 1, "title": "hello", "thread": "t"} == (
        watcher.events[-1]
    )
