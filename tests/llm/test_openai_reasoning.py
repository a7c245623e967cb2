"""What models thought: kept, sent back to the model that thought it, and to nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.llm.model import Request
from flowrt.llm.request import build_request
from flowrt.testing import FakeCompletionsAPI, FakeMessagesAPI
from tests.llm import anthropic_calls
from tests.llm.anthropic_calls import TEXT, ask, result
from tests.llm.openai_calls import DONE, LOOK, chunk, model, once, streamed

LISTENERS = [None, lambda delta: None]

GEMINI = {"google": {"thought_signature": "CikB0e+/kA==\u2028"}}

DETAILS = [
    {"type": "reasoning.text", "text": "hm — é", "signature": "c2ln", "format": "x", "index": 0},
    {"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "rs_1", "index": 1},
]


def call(**more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "call_1", "name": "look", "input": {}, **more}


def on_from(content: list[dict[str, Any]], *answer: dict[str, Any]) -> Request:
    """The request that goes on from a reply, as the agent builds it."""
    return build_request(
        system=[],
        tools=[LOOK],
        messages=[
            *ask().messages,
            {"role": "assistant", "content": content},
            {"role": "user", "content": list(answer)},
        ],
    )


@pytest.mark.parametrize("on_delta", LISTENERS)
@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning_content": "let me see — é\u2028"},
        {"reasoning": "hm"},
        {"reasoning_details": DETAILS},
        {"extra_content": GEMINI},
    ],
)
async def test_what_came_beside_a_message_goes_back_byte_for_byte(
    chat: FakeCompletionsAPI, fields: dict[str, Any], on_delta: Any
) -> None:
    chat.add({"content": [{"type": "text", "text": "so"}, {"type": "message", **fields}, call()]},
             "done")  # fmt: skip
    async with model(chat) as gpt:
        reply = await gpt.complete(ask(tools=[LOOK]), on_delta)
        await gpt.complete(on_from(reply.content, result("call_1")))

    turn = chat.requests[1].messages[1]
    assert fields == {name: turn[name] for name in turn.keys() & fields.keys()}
    assert [] == chat.refused


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_thought_signatures_of_calls_go_back_with_their_calls(
    chat: FakeCompletionsAPI, on_delta: Any
) -> None:
    other = {**call(extra_content={"google": {"thought_signature": "b3RoZXI="}}), "id": "call_2"}
    chat.add({"content": [call(extra_content=GEMINI), other, {**call(), "id": "call_3"}]}, "done")
    async with model(chat) as gemini:
        reply = await gemini.complete(ask(tools=[LOOK]), on_delta)
        answers = [result(f"call_{n}") for n in (1, 2, 3)]
        await gemini.complete(on_from(reply.content, *answers))

    calls = chat.requests[1].messages[1]["tool_calls"]
    assert [GEMINI, {"google": {"thought_signature": "b3RoZXI="}}, None] == [
        c.get("extra_content") for c in calls
    ]
    assert [] == chat.refused


async def test_the_calls_themselves_are_blocks_that_every_provider_knows(
    chat: FakeCompletionsAPI,
) -> None:
    chat.add({"content": [call(extra_content=GEMINI)]})

    reply = await once(model(chat), ask(tools=[LOOK]))

    assert [call()] == reply.tool_calls


async def test_openrouters_details_go_back_alone(chat: FakeCompletionsAPI) -> None:
    fields = {"type": "message", "reasoning": "hm — é", "reasoning_details": DETAILS}
    chat.add({"content": [fields, {"type": "text", "text": "so"}]}, "done")
    async with model(chat) as router:
        reply = await router.complete(ask())
        await router.complete(on_from(reply.content, TEXT))

    assert "hm — é" == reply.content[0]["thinking"]
    turn = chat.requests[1].messages[1]
    assert DETAILS == turn["reasoning_details"]
    assert "reasoning" not in turn


async def test_details_that_come_in_pieces_are_put_together() -> None:
    opened = {**DETAILS[0], "text": "hm", "signature": None}
    closed = {"type": "reasoning.text", "text": " — é", "signature": "c2ln", "index": 0}
    reply = streamed(
        chunk({"reasoning": "h", "reasoning_details": [opened]}),
        chunk({"reasoning": "m", "reasoning_details": [closed]}),
        chunk({"reasoning_details": [DETAILS[1]]}),
        chunk({"content": "so"}, "stop"),
        DONE,
    )

    assert DETAILS == reply.content[0]["echo"]["message"]["reasoning_details"]


async def test_another_model_gets_nothing_of_it(chat: FakeCompletionsAPI) -> None:
    chat.add({"content": [{"type": "thinking", "thinking": "hm"},
                          call(extra_content=GEMINI)]}, "done")  # fmt: skip
    async with model(chat) as gpt:
        reply = await gpt.complete(ask(tools=[LOOK]))
        request = on_from(reply.content, result("call_1"))
        request.model = "another"
        await gpt.complete(request)

    assert {"role", "content", "tool_calls"} == chat.requests[1].messages[1].keys()
    assert {"id", "type", "function"} == chat.requests[1].messages[1]["tool_calls"][0].keys()


async def test_the_messages_api_gets_nothing_of_it_and_is_asked_once(
    chat: FakeCompletionsAPI, api: FakeMessagesAPI
) -> None:
    chat.add({"content": [{"type": "thinking", "thinking": "hm"}, call(extra_content=GEMINI)]})
    api.add("done")
    reply = await once(model(chat), ask(tools=[LOOK]))

    await anthropic_calls.once(anthropic_calls.model(api), on_from(reply.content, result("call_1")))

    assert [call()] == api.bodies[0]["messages"][1]["content"]
    assert [] == api.refused
