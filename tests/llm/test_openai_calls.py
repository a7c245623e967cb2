"""Calls that are cut off, repeated, or many at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flowrt.errors import ModelUnavailable
from flowrt.llm.model import Delta
from flowrt.llm.openai import ChatSettings, OpenAIModel
from flowrt.testing import FakeCompletionsAPI, Gate
from tests.llm.anthropic_calls import Waits, ask
from tests.llm.openai_calls import client, model, once


@pytest.mark.parametrize("on_delta", [None, lambda delta: None])
async def test_a_cancelled_call_hangs_up_and_leaves_the_model_usable(
    chat: FakeCompletionsAPI, on_delta: Any
) -> None:
    gate = Gate()
    chat.add({"text": "late", "hold": gate}, "hi")
    async with model(chat) as gpt:
        call = asyncio.ensure_future(gpt.complete(ask(), on_delta))
        await gate.reached()

        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        await chat.requests[0].abandoned()
        assert "hi" == (await gpt.complete(ask(), on_delta)).text


async def test_a_stream_cancelled_in_the_middle_hangs_up(chat: FakeCompletionsAPI) -> None:
    gate = Gate()
    chat.add({"text": "one two three four five", "hold": gate, "holdAfter": 2}, "hi")
    async with model(chat) as gpt:
        call = asyncio.ensure_future(gpt.complete(ask(), lambda delta: None))
        await gate.reached()

        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        await chat.requests[0].abandoned()
        assert "hi" == (await gpt.complete(ask())).text


async def test_a_listener_that_fails_ends_the_call_with_its_own_error(
    chat: FakeCompletionsAPI,
) -> None:
    chat.add("hello")

    def fail(delta: Delta) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await once(model(chat), ask(), fail)

    assert 1 == len(chat.requests)


def test_a_model_works_in_two_event_loops_one_after_the_other(chat: FakeCompletionsAPI) -> None:
    chat.add("one", "two")
    connection = client(chat)
    gpt = OpenAIModel(connection, ChatSettings(model="m"))

    async def ask_once() -> str:
        await connection.start()
        try:
            return (await gpt.complete(ask())).text
        finally:
            await connection.close()

    assert ["one", "two"] == [asyncio.run(ask_once()), asyncio.run(ask_once())]


async def test_many_calls_at_once_each_get_their_own_answer() -> None:
    with FakeCompletionsAPI(reply=lambda body: body["messages"][0]["content"]) as api:
        async with model(api) as gpt:
            replies = await asyncio.gather(*(gpt.complete(ask(f"n{i}")) for i in range(40)))

    assert [f"n{i}" for i in range(40)] == [reply.text for reply in replies]


async def test_a_stream_leaves_its_connection_for_the_next_call(chat: FakeCompletionsAPI) -> None:
    chat.add("one", "two", "three")
    async with model(chat) as gpt:
        for _ in range(3):
            await gpt.complete(ask(), lambda delta: None)

    assert 1 == len({call.port for call in chat.requests})


async def test_closing_ends_the_calls_under_way(chat: FakeCompletionsAPI, clock: Waits) -> None:
    gate = Gate()
    chat.add({"text": "never", "hold": gate})
    connection = client(chat, clock)
    gpt = OpenAIModel(connection, ChatSettings(model="m"))
    call = asyncio.ensure_future(gpt.complete(ask()))
    await gate.reached()

    await connection.close()

    with pytest.raises(ModelUnavailable):
        await call
