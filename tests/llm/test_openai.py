"""What is sent to a Chat Completions server, and what its replies become."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.llm.model import Delta, Usage
from flowrt.llm.openai import length_field
from flowrt.testing import FakeCompletionsAPI
from tests.llm.anthropic_calls import TEXT, after, ask, result
from tests.llm.openai_calls import LOOK, model, once

LISTENERS = [None, lambda delta: None]

CALL = {"type": "tool_use", "id": "call_1", "name": "look", "input": {"q": "é", "n": 2**60}}


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_text_and_calls_become_blocks(chat: FakeCompletionsAPI, on_delta: Any) -> None:
    text = {"type": "text", "text": 'so — "naïve"\r\n\u2029\x85 😀'}
    chat.add({"content": [text, CALL]})

    reply = await once(model(chat), ask(tools=[LOOK]), on_delta)

    assert [text, CALL] == reply.content
    assert "tool_use" == reply.stop_reason
    assert "gpt-5.4" == reply.model


async def test_a_tool_round_goes_back_and_is_accepted(chat: FakeCompletionsAPI) -> None:
    chat.add({"text": "One moment.", "toolCalls": [{"name": "look", "id": "call_1"}]}, "done")
    async with model(chat) as gpt:
        reply = await gpt.complete(ask(tools=[LOOK]))

        await gpt.complete(after(reply.content, result("call_1"), TEXT))

    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    assert [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "One moment.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "found"},
        {"role": "user", "content": "go on"},
    ] == chat.requests[1].messages
    assert [] == chat.refused


async def test_deltas_add_up_to_the_reply(chat: FakeCompletionsAPI) -> None:
    text = "A sentence that is longer than one piece of the stream, and then some more."
    calls = [{"name": "look", "input": {"q": "something long enough"}, "id": "call_9"}]
    chat.add({"thinking": "hm, let me think", "text": text, "toolCalls": calls})
    deltas: list[Delta] = []

    await once(model(chat), ask(tools=[LOOK]), deltas.append)

    said = {
        kind: "".join(d.text for d in deltas if d.kind == kind)
        for kind in ("thinking", "text", "tool_input")
    }
    assert {
        "thinking": "hm, let me think",
        "text": text,
        "tool_input": '{"q": "something long enough"}',
    } == said
    last = deltas[-1]
    assert (2, "look", "call_9") == (last.index, last.tool, last.tool_call_id)


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_cached_tokens_are_part_of_the_prompt(
    chat: FakeCompletionsAPI, on_delta: Any
) -> None:
    usage = {"inputTokens": 7, "outputTokens": 5, "cachedTokens": 11, "thinkingTokens": 3}
    chat.add({"text": "hi", "usage": usage})

    reply = await once(model(chat), ask(), on_delta)

    expected = Usage(input_tokens=7, output_tokens=5, cached_tokens=11, thinking_tokens=3)
    assert expected == reply.usage
    assert 18 == expected.prompt_tokens


async def test_a_conversation_that_goes_on_is_read_from_the_cache(chat: FakeCompletionsAPI) -> None:
    chat.add("a", "b")
    async with model(chat) as gpt:
        first = await gpt.complete(ask("a long question " * 50))
        again = ask("a long question " * 50)
        again.messages += [{"role": "assistant", "content": first.content},
                           {"role": "user", "content": [TEXT]}]  # fmt: skip
        second = await gpt.complete(again)

    assert first.usage is not None
    assert second.usage is not None
    assert 0 == first.usage.cached_tokens
    assert second.usage.cached_tokens > 200


async def test_the_request_carries_what_was_asked_for_and_nothing_else(
    chat: FakeCompletionsAPI,
) -> None:
    chat.add("a", "b")
    async with model(chat, settings={"model": "qwen3", "max_tokens": 99}) as gpt:
        await gpt.complete(ask())
        await gpt.complete(
            ask(
                system=[
                    {"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}
                ],
                tools=[LOOK],
                tool_choice={"type": "auto"},
                model="llama4",
                max_tokens=5,
                temperature=0.2,
            )
        )

    said = {"role": "user", "content": "hello"}
    function = {"name": "look", "description": "Looks it up.",
                "parameters": {"type": "object", "properties": {}}}  # fmt: skip
    assert [
        {"model": "qwen3", "max_tokens": 99, "messages": [said]},
        {
            "model": "llama4",
            "max_tokens": 5,
            "messages": [{"role": "system", "content": "be brief"}, said],
            "tools": [{"type": "function", "function": function}],
            "tool_choice": "auto",
            "temperature": 0.2,
        },
    ] == chat.bodies


async def test_a_length_that_nobody_set_is_left_to_the_model(chat: FakeCompletionsAPI) -> None:
    chat.add("a")

    await once(model(chat), ask())

    assert {"model", "messages"} == chat.bodies[0].keys()


def test_openai_is_told_the_length_under_its_new_name_and_others_under_the_old() -> None:
    assert "max_completion_tokens" == length_field("https://api.openai.com/v1")
    assert "max_tokens" == length_field("http://localhost:11434/v1")
    assert "max_tokens" == length_field("https://api.openai.com.evil.example/v1")


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "look"}, {"type": "function", "function": {"name": "look"}}),
    ],
)
async def test_a_tool_choice_is_told_in_the_apis_words(
    chat: FakeCompletionsAPI, choice: dict[str, Any], expected: Any
) -> None:
    chat.add("a")

    await once(model(chat), ask(tools=[LOOK], tool_choice=choice))

    assert expected == chat.bodies[0]["tool_choice"]


@pytest.mark.parametrize("on_delta", LISTENERS)
@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("end_turn", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("refusal", "refusal"),
        ("content_filter: SAFETY", "refusal"),
        ("tool_calls", "end_turn"),
        ("whatever", "whatever"),
    ],
)
async def test_why_a_reply_ended_is_told_in_the_messages_apis_words(
    chat: FakeCompletionsAPI, on_delta: Any, finish: str, expected: str
) -> None:
    chat.add({"text": "hi", "stopReason": finish})

    assert expected == (await once(model(chat), ask(), on_delta)).stop_reason


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_calls_of_a_reply_that_merely_stopped_are_calls(
    chat: FakeCompletionsAPI, on_delta: Any
) -> None:
    chat.add({"content": [CALL], "stopReason": "stop"})

    reply = await once(model(chat), ask(tools=[LOOK]), on_delta)

    assert "tool_use" == reply.stop_reason


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_a_refusal_of_the_model_is_one(chat: FakeCompletionsAPI, on_delta: Any) -> None:
    chat.add({"content": [{"type": "message", "refusal": "I won't."}], "stopReason": "end_turn"})

    reply = await once(model(chat), ask(), on_delta)

    assert ("refusal", "I won't.") == (reply.stop_reason, reply.text)


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_arguments_that_were_cut_off_are_never_acted_upon(
    chat: FakeCompletionsAPI, on_delta: Any
) -> None:
    cut = {"type": "tool_use", "id": "call_1", "name": "send", "input": '{"to": "all'}
    chat.add({"content": [cut], "stopReason": "tool_use"}, "done")
    async with model(chat) as gpt:
        reply = await gpt.complete(ask(tools=[LOOK]), on_delta)
        await gpt.complete(after(reply.content, result("call_1")))

    assert "max_tokens" == reply.stop_reason
    assert {"INVALID_JSON": '{"to": "all'} == reply.tool_calls[0]["input"]
    assert [] == chat.refused


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_a_call_that_was_cut_off_by_the_length_stays_cut_off(
    chat: FakeCompletionsAPI, on_delta: Any
) -> None:
    chat.add({"content": [CALL], "stopReason": "max_tokens"})

    assert "max_tokens" == (await once(model(chat), ask(tools=[LOOK]), on_delta)).stop_reason


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_a_reply_without_content_is_a_reply(chat: FakeCompletionsAPI, on_delta: Any) -> None:
    chat.add({"content": []})

    reply = await once(model(chat), ask(), on_delta)

    assert ([], "end_turn") == (reply.content, reply.stop_reason)


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_text_that_cannot_be_stored_is_cleaned_where_it_enters(
    chat: FakeCompletionsAPI, on_delta: Any
) -> None:
    chat.add("a\x00b")

    assert "a\ufffdb" == (await once(model(chat), ask(), on_delta)).text


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_an_id_that_was_used_before_is_replaced(
    chat: FakeCompletionsAPI, on_delta: Any
) -> None:
    # llama.cpp and some gateways number the calls of each reply anew.
    again = {"content": [{**CALL, "id": "call_0"}, {**CALL, "id": "call_0"}]}
    chat.add({"content": [{**CALL, "id": "call_0"}]}, again, "done")
    async with model(chat) as gpt:
        first = await gpt.complete(ask(tools=[LOOK]), on_delta)
        request = after(first.content, result("call_0"))
        second = await gpt.complete(request, on_delta)
        ids = [call["id"] for call in second.tool_calls]
        request.messages += [{"role": "assistant", "content": second.content},
                             {"role": "user", "content": [result(i) for i in ids]}]  # fmt: skip
        await gpt.complete(request)

    assert ["call_0"] == [call["id"] for call in first.tool_calls]
    assert 2 == len(set(ids) - {"call_0"})
    assert [] == chat.refused
