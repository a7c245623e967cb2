"""The record: what was said, word for word, beside the context that the model is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowrt.testing import FakeMessagesAPI, FakeReply
from tests.agent.remembering import Kept, remembering, say
from tests.services import load, texts

TOOL = FakeReply(tool_calls=[{"name": "echo", "input": {"x": "y" * 400}}])


@pytest.fixture(params=["memory", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/state.db"


async def test_an_agent_remembers_and_its_record_has_what_was_said(
    api: FakeMessagesAPI, tmp_path: Path, storage: str
) -> None:
    api.add("Hello Sam.", "Sam.")
    async with load(tmp_path, remembering(api.base_url), storage) as service:
        await service.invoke("chat", say("My name is Sam."))
        result = await service.invoke("chat", say("What is my name?"))
        turns = await Kept.of(service).turns()
        thread = await Kept.of(service).thread()
    assert result.message is not None
    assert "Sam." == result.message.body
    assert [["My name is Sam."], ["Hello Sam."], ["What is my name?"]] == [
        texts(m) for m in api.requests[1].messages
    ]
    assert [
        (1, "user", "My name is Sam."),
        (2, "assistant", "Hello Sam."),
        (3, "user", "What is my name?"),
        (4, "assistant", "Sam."),
    ] == [(turn.seq, turn.role, turn.text) for turn in turns]
    assert [{"iterations": 1}] * 4 == [turn.attrs for turn in turns]
    assert thread is not None
    assert ("ann", 4, "My name is Sam.") == (thread.user, thread.turns, thread.title)
