"""An agent on `llm-openai`, as a user runs it: the real SDK over real HTTP against the fake API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ModelUnavailable
from flowrt.llm.model import Delta
from flowrt.message import Outcome
from flowrt.service import Service
from flowrt.testing import FakeCompletionsAPI, FakeMessagesAPI
from tests.agent.compacting import Listener
from tests.services import agent, load, say

LONG = "word " * 120
GEMINI = {"google": {"thought_signature": "CikB0e+/kA=="}}


@pytest.fixture
def chat() -> Iterator[FakeCompletionsAPI]:
    with FakeCompletionsAPI() as fake:
        yield fake


def on_openai(api: FakeCompletionsAPI, kind: str = "llm-openai", **settings: Any) -> dict[str, Any]:
    """The document of `agent`, with its connector on the fake Chat Completions API."""
    document = agent("", **settings)
    connection = {"apiKey": "k", "baseURL": api.base_url, "maxRetries": 2}
    document["connectors"] = [{"name": "claude", "type": kind, "settings": connection}]
    return document


class Watcher:
    """A listener that also takes what streams."""

    def __init__(self) -> None:
        self.streamed: list[Delta] = []

    def event(self, event: dict[str, Any]) -> None:
        pass

    def delta(self, delta: Delta) -> None:
        self.streamed.append(delta)


async def told(service: Service, text: str, **options: Any) -> Any:
    result = await service.invoke("chat", say(text), **options)
    assert Outcome.COMPLETED == result.outcome, result.error
    assert result.message is not None
    return result.message.body


def roles(body: dict[str, Any]) -> list[str]:
    return [message["role"] for message in body["messages"]]


async def test_an_agent_works_with_tools_in_parallel_and_remembers(
    chat: FakeCompletionsAPI, tmp_path: Path
) -> None:
    calls = [{"name": "echo", "input": {"n": n}, "id": f"call_{n}"} for n in (1, 2, 3)]
    chat.add({"text": "One moment.", "toolCalls": calls}, "All three.", "As I said.")
    for storage in [f"sqlite:{tmp_path}/state.db"] * 2:
        async with load(tmp_path, on_openai(chat), storage) as service:
            answer = await told(service, "look" if not chat.requests else "again")

    assert "As I said." == answer
    system, asked, called, *results = chat.requests[1].messages
    assert ("system", "user") == (system["role"], asked["role"])
    assert ["call_1", "call_2", "call_3"] == [call["id"] for call in called["tool_calls"]]
    assert [(f"call_{n}", {"n": n}) for n in (1, 2, 3)] == [
        (answered["tool_call_id"], json.loads(answered["content"])) for answered in results
    ]
    assert ["system", "user", "assistant", "tool", "tool", "tool", "assistant", "user"] == roles(
        chat.bodies[2]
    )
    assert [] == chat.refused


async def test_what_has_been_said_is_read_from_the_cache(
    chat: FakeCompletionsAPI, tmp_path: Path
) -> None:
    chat.reply = lambda _: "fine"
    watcher = Listener()
    async with load(tmp_path, on_openai(chat)) as service:
        for _ in range(3):
            await told(service, LONG, watcher=watcher)

    usages = [event["usage"] for event in watcher.of("turn_end")]
    assert usages[1]["promptTokens"] - 20 < usages[2]["cachedTokens"] < usages[2]["promptTokens"]


async def test_an_answer_streams(chat: FakeCompletionsAPI, tmp_path: Path) -> None:
    text = "A sentence that comes in several pieces."
    chat.add({"thinking": "hm", "text": text})
    watcher = Watcher()
    async with load(tmp_path, on_openai(chat)) as service:
        assert text == await told(service, "hi", watcher=watcher)

    assert chat.bodies[0]["stream"] is True
    assert text == "".join(delta.text for delta in watcher.streamed if delta.kind == "text")


async def test_a_long_conversation_is_summarised(chat: FakeCompletionsAPI, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Any:
        return "fine " * 40 if body.get("tools") else "The user is called Sam."

    chat.reply = answer
    document = on_openai(chat, contextMaxTokens=1500, memoryCompaction="summarize")
    async with load(tmp_path, document) as service:
        for number in range(9):
            await told(service, f"question {number} {LONG}")

    assert any("tools" not in body for body in chat.bodies)
    assert "The user is called Sam." in chat.bodies[-1]["messages"][1]["content"]
    assert [] == chat.refused


async def test_a_prompt_over_the_window_is_cut_and_sent_again(tmp_path: Path) -> None:
    with FakeCompletionsAPI(reply=lambda _: "fine", window=1200) as api:
        async with load(tmp_path, on_openai(api, contextMaxTokens=100_000)) as service:
            for number in range(8):
                assert "fine" == await told(service, f"{number} {LONG}")

    assert [] != api.refused
    assert all("maximum context length" in text for text in api.refused)


async def test_a_thread_moves_between_providers_and_back(
    chat: FakeCompletionsAPI, tmp_path: Path
) -> None:
    """Thinking and signatures go back to the model that wrote them and to no other."""
    with FakeMessagesAPI() as api:
        claude = agent(api.base_url)
        claude["connectors"][0]["settings"]["thinking"] = "adaptive"
        gemini = on_openai(chat, "llm-gemini")
        look = {"name": "echo", "input": {"n": 1}}
        api.add({"thinking": "I think", "toolCalls": [{**look, "id": "toolu_1"}]}, "First.")
        signed = {"type": "tool_use", **look, "id": "call_1", "extra_content": GEMINI}
        chat.add({"content": [{"type": "thinking", "thinking": "hm"}, signed]}, "Second.")
        api.add("Third.")
        chat.add("Fourth.")
        answers = []
        for document in (claude, gemini, claude, gemini):
            storage = f"sqlite:{tmp_path}/state.db"
            async with load(tmp_path, document, storage) as service:
                answers.append(await told(service, f"turn {len(answers)}"))

    assert ["First.", "Second.", "Third.", "Fourth."] == answers
    assert [] == api.refused
    assert [] == chat.refused
    # Claude gets its own thinking back, and of Gemini's round what every model understands.
    third = api.bodies[2]["messages"]
    assert "I think" == third[1]["content"][0]["thinking"]
    assert [{"type": "tool_use", **look, "id": "call_1"}] == third[5]["content"]
    # Gemini gets its own thoughts back, and nothing of Claude's.
    first, second = [m for m in chat.bodies[-1]["messages"] if m.get("tool_calls")]
    assert {"role", "content", "tool_calls"} == first.keys()
    assert "hm" == second["reasoning_content"]
    assert GEMINI == second["tool_calls"][0]["extra_content"]


async def test_thinking_that_came_over_chat_is_no_part_of_a_summary(
    chat: FakeCompletionsAPI, tmp_path: Path
) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if not body.get("tools"):
            return "They talked."
        return {"thinking": "a secret thought", "text": "fine " * 40}

    chat.reply = answer
    document = on_openai(chat, contextMaxTokens=1500, memoryCompaction="summarize")
    async with load(tmp_path, document) as service:
        for number in range(9):
            await told(service, f"question {number} {LONG}")

    summaries = [body for body in chat.bodies if "tools" not in body]
    assert [] != summaries
    assert "secret" not in json.dumps(summaries)


async def test_a_call_that_is_cut_off_is_made_again(
    chat: FakeCompletionsAPI, tmp_path: Path
) -> None:
    cut = {"type": "tool_use", "id": "call_1", "name": "echo", "input": '{"n": 1'}
    chat.add({"content": [cut]}, {"toolCalls": [{"name": "echo", "input": {"n": 1}}]}, "done")
    async with load(tmp_path, on_openai(chat)) as service:
        assert "done" == await told(service, "go")

    assert "ERROR: not run" in chat.requests[1].messages[-1]["content"]
    assert [] == chat.refused


async def test_a_server_that_is_down_fails_the_run_and_leaves_the_thread(
    chat: FakeCompletionsAPI, tmp_path: Path
) -> None:
    document = on_openai(chat)
    document["connectors"][0]["settings"]["maxRetries"] = 0
    chat.add("One.", {"error": 503, "message": "overloaded"}, "Two.")
    async with load(tmp_path, document) as service:
        await told(service, "a")
        failed = await service.invoke("chat", say("lost"))
        await told(service, "b")

    assert Outcome.FAILED == failed.outcome
    cause: BaseException | None = failed.error
    while cause is not None and not isinstance(cause, ModelUnavailable):
        cause = cause.__cause__
    assert cause is not None
    assert "llm-openai stream: Post" in str(cause)
    said = [m["content"] for m in chat.bodies[-1]["messages"][1:]]
    assert ["a", "One.", "b"] == said


async def test_repeated_ids_of_a_server_make_no_thread_unusable(
    chat: FakeCompletionsAPI, tmp_path: Path
) -> None:
    for number in range(3):
        chat.add({"toolCalls": [{"name": "echo", "id": "call_0"}]}, f"answer {number}")
    async with load(tmp_path, on_openai(chat)) as service:
        for number in range(3):
            assert f"answer {number}" == await told(service, "go")

    assert [] == chat.refused
