"""Calls that are cut off, repeated, or many at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flowrt.errors import ModelUnavailable
from flowrt.llm.model import Delta
from flowrt.testing import FakeMessagesAPI, Gate
from tests.llm.anthropic_calls import Waits, ask, model, once


@pytest.mark.parametrize("on_delta", [None, lambda delta: None])
async def test_a_cancelled_call_hangs_up_and_leaves_the_model_usable(
    api: FakeMessagesAPI, on_delta: Any
) -> None:
    gate = Gate()
    api.add({"text": "late", "hold": gate}, "hi")
    async with model(api) as claude:
        call = asyncio.ensure_future(claude.complete(ask(), on_delta))
        await gate.reached()

        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        await api.requests[0].abandoned()
        assert "hi" == (await claude.complete(ask(), on_delta)).text


async def test_a_stream_cancelled_in_the_middle_hangs_up(api: FakeMessagesAPI) -> None:
    gate = Gate()
    api.add({"text": "one two three four five", "hold": gate, "holdAfter": 4}, "hi")
    async with model(api) as claude:
        call = asyncio.ensure_future(claude.complete(ask(), lambda delta: None))
        await gate.reached()

        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        await api.requests[0].abandoned()
        assert "hi" == (await claude.complete(ask())).text


async def test_a_listener_that_fails_ends_the_call_with_its_own_error(
    api: FakeMessagesAPI,
) -> None:
    api.add("hello")

    def fail(delta: Delta) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await once(model(api), ask(), fail)

    assert 1 == len(api.requests)


def test_a_model_works_in_two_event_loops_one_after_the_other(api: FakeMessagesAPI) -> None:
    api.add("one", "two")
    claude = model(api)

    async def once() -> str:
        await claude.start()
        try:
            return (await claude.complete(ask())).text
        finally:
            await claude.close()

    assert ["one", "two"] == [asyncio.run(once()), asyncio.run(once())]


async def test_many_calls_at_once_each_get_their_own_answer() -> None:
    with FakeMessagesAPI(reply=lambda body: body["messages"][0]["content"][0]["text"]) as api:
        async with model(api) as claude:
            replies = await asyncio.gather(*(claude.complete(ask(f"n{i}")) for i in range(40)))

    assert [f"n{i}" for i in range(40)] == [reply.text for reply in replies]


async def test_a_stream_leaves_its_connection_for_the_next_call(api: FakeMessagesAPI) -> None:
    api.add("one", "two", "three")
    async with model(api) as claude:
        for _ in range(3):
            await claude.complete(ask(), lambda delta: None)

        ports = {call.port for call in api.requests}
        assert 1 == len(ports)


async def test_closing_ends_the_calls_under_way(api: FakeMessagesAPI, clock: Waits) -> None:
    gate = Gate()
    api.add({"text": "never", "hold": gate})
    claude = model(api, clock=clock)
    call = asyncio.ensure_future(claude.complete(ask()))
    await gate.reached()

    await claude.close()

    with pytest.raises(ModelUnavailable):
        await call
