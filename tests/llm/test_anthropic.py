"""What is sent to the Messages API, and what its replies become."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.llm.anthropic import AnthropicModel
from flowrt.llm.model import Delta, Usage
from flowrt.testing import FakeMessagesAPI
from tests.llm.anthropic_calls import CONTENT, KEY, TEXT, after, ask, model, once, result


async def test_a_reply_keeps_every_block_as_it_was_sent(api: FakeMessagesAPI) -> None:
    api.add({"content": CONTENT})

    reply = await once(model(api), ask())

    assert CONTENT == reply.content
    assert "tool_use" == reply.stop_reason


async def test_a_streamed_reply_is_the_same_as_one_in_one_piece(api: FakeMessagesAPI) -> None:
    api.add({"content": CONTENT}, {"content": CONTENT})
    async with model(api) as claude:
        whole = await claude.complete(ask())

        streamed = await claude.complete(ask(), on_delta=lambda delta: None)

        assert (whole.content, whole.stop_reason, whole.model) == (
            streamed.content,
            streamed.stop_reason,
            streamed.model,
        )
        assert whole.usage == streamed.usage


async def test_thinking_goes_back_byte_for_byte_and_is_accepted(api: FakeMessagesAPI) -> None:
    api.add({"content": CONTENT}, "done")
    async with model(api) as claude:
        reply = await claude.complete(ask())

        await claude.complete(after(reply.content, result("toolu_1")))

        assert CONTENT == api.bodies[1]["messages"][1]["content"]
        assert [] == api.refused


async def test_deltas_add_up_to_the_reply(api: FakeMessagesAPI) -> None:
    text = "A sentence that is longer than one piece of the stream, and then some more."
    calls = [{"name": "look", "input": {"q": "something long enough"}, "id": "toolu_9"}]
    api.add({"thinking": "hm, let me think", "text": text, "toolCalls": calls})
    deltas: list[Delta] = []

    await once(model(api), ask(), deltas.append)

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
    assert (2, "look", "toolu_9") == (last.index, last.tool, last.tool_call_id)


@pytest.mark.parametrize("on_delta", [None, lambda delta: None])
async def test_usage_names_what_was_read_cached_and_written(
    api: FakeMessagesAPI, on_delta: Any
) -> None:
    usage = {"inputTokens": 7, "outputTokens": 5, "cachedTokens": 11, "cacheWriteTokens": 13}
    api.add({"text": "hi", "usage": usage})

    reply = await once(model(api), ask(), on_delta)

    expected = Usage(input_tokens=7, output_tokens=5, cached_tokens=11, cache_write_tokens=13)
    assert expected == reply.usage


async def test_the_request_carries_what_was_asked_for_and_nothing_else(
    api: FakeMessagesAPI,
) -> None:
    api.add("a", "b")
    async with model(api, model="claude-haiku-4-5", max_tokens=99) as claude:
        tool = {"name": "look", "input_schema": {"type": "object"}}

        await claude.complete(ask())
        await claude.complete(
            ask(
                system=[{"type": "text", "text": "be brief"}],
                tools=[tool],
                tool_choice={"type": "auto"},
                model="claude-opus-4-6",
                max_tokens=5,
                temperature=0.2,
            )
        )

        messages = ask().messages
        assert [
            {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": messages},
            {
                "model": "claude-opus-4-6",
                "max_tokens": 5,
                "messages": messages,
                "system": [{"type": "text", "text": "be brief"}],
                "tools": [tool],
                "tool_choice": {"type": "auto"},
                "temperature": 0.2,
            },
        ] == api.bodies


async def test_thinking_is_asked_for_as_configured(api: FakeMessagesAPI) -> None:
    api.add("a", "b", "c", "d")

    await once(model(api), ask())
    await once(model(api, thinking="adaptive"), ask())
    async with model(api, thinking="budgeted", thinking_budget=2048) as budgeted:
        await budgeted.complete(ask())
        await budgeted.complete(ask(max_tokens=500))

        enabled = {"type": "enabled", "budget_tokens": 2048}
        assert [None, {"type": "adaptive"}, enabled, enabled] == [
            body.get("thinking") for body in api.bodies
        ]
        assert 2548 == api.bodies[3]["max_tokens"]


async def test_a_call_that_is_forced_is_made_without_thinking(api: FakeMessagesAPI) -> None:
    api.add("a", "b")
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    async with model(api, thinking="adaptive") as claude:
        await claude.complete(ask(tools=tools, tool_choice={"type": "any"}))
        await claude.complete(ask(tools=tools, tool_choice={"type": "auto"}))

        assert [None, {"type": "adaptive"}] == [body.get("thinking") for body in api.bodies]


async def test_a_reply_that_may_get_long_is_streamed(api: FakeMessagesAPI) -> None:
    api.add("short", "long")
    async with model(api) as claude:
        await claude.complete(ask(max_tokens=21_333))
        await claude.complete(ask(max_tokens=64_000))

        assert [False, True] == ["stream" in body for body in api.bodies]


async def test_the_base_url_comes_from_the_environment_when_none_is_set(
    api: FakeMessagesAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", api.base_url)
    api.add("hi")

    reply = await once(AnthropicModel(api_key=KEY), ask())

    assert "hi" == reply.text


# What fails, and what is tried again


async def test_arguments_that_were_cut_off_are_never_acted_upon(api: FakeMessagesAPI) -> None:
    cut = {"type": "tool_use", "id": "toolu_1", "name": "send", "input": '{"to": "all'}
    api.add({"content": [cut], "stopReason": "tool_use"})

    reply = await once(model(api), ask(), lambda delta: None)

    assert "max_tokens" == reply.stop_reason
    assert {"INVALID_JSON": '{"to": "all'} == reply.tool_calls[0]["input"]


async def test_a_reply_without_content_is_a_reply(api: FakeMessagesAPI) -> None:
    api.add({"content": []}, {"content": []})
    async with model(api) as claude:
        assert [] == (await claude.complete(ask())).content
        assert [] == (await claude.complete(ask(), lambda delta: None)).content


async def test_blank_text_in_a_reply_is_kept_as_it_came(api: FakeMessagesAPI) -> None:
    content = [
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
    ]
    api.add({"content": content}, {"content": content})
    async with model(api) as claude:
        assert content == (await claude.complete(ask())).content
        assert content == (await claude.complete(ask(), lambda delta: None)).content


async def test_text_that_cannot_be_stored_is_cleaned_where_it_enters(api: FakeMessagesAPI) -> None:
    api.add("a\x00b", "a\x00b")
    async with model(api) as claude:
        assert "a\ufffdb" == (await claude.complete(ask())).text
        assert "a\ufffdb" == (await claude.complete(ask(), lambda delta: None)).text


async def test_thinking_of_another_model_is_left_out_and_not_tried_again(
    api: FakeMessagesAPI,
) -> None:
    api.add({"thinking": "hm", "text": "I see"}, "second", "third")
    first = model(api, thinking="adaptive")
    async with model(api, model="claude-opus-4-6", thinking="adaptive") as other:
        reply = await first.complete(ask())

        assert "second" == (await other.complete(after(reply.content, TEXT))).text
        assert "third" == (await other.complete(after(reply.content, TEXT))).text

        assert 1 == len(api.refused)
        assert [{"type": "text", "text": "I see"}] == api.bodies[3]["messages"][1]["content"]
        assert {"type": "adaptive"} == api.bodies[3]["thinking"]


async def test_a_round_that_lost_its_thinking_goes_on_without_any(api: FakeMessagesAPI) -> None:
    api.add({"thinking": "hm", "toolCalls": [{"name": "look", "id": "toolu_1"}]}, "done")
    reply = await once(model(api, thinking="adaptive"), ask())

    async with model(api, model="claude-opus-4-6", thinking="adaptive") as other:
        await other.complete(after(reply.content, result("toolu_1")))

        assert "thinking" not in api.bodies[-1]


# Life
