"""A whole agent run over SSE: `samples/http-sse.yaml`, with a fake of the provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from flowrt.service import Service
from flowrt.testing import FakeMessagesAPI
from flowrt.testing.replies import FakeReply, Gate
from tests.sources.web import HERE, Events, frames

SAMPLE = Path(__file__).parent.parent.parent / "samples/http-sse.yaml"
TURN = {"threadId": "user-42", "message": "How long is green tea brewed?"}


@asynccontextmanager
async def sample(api: FakeMessagesAPI) -> AsyncIterator[tuple[Service, httpx2.AsyncClient]]:
    environ = HERE | {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": api.base_url}
    service = Service.load(SAMPLE, storage="memory:", environ=environ)
    await service.start(sources=True)
    url = service.streams["http"].url  # type: ignore[attr-defined]
    async with httpx2.AsyncClient(base_url=url, timeout=20) as client:
        yield service, client
    await service.stop()


def told(seen: list[tuple[str, Any]], kind: str) -> list[Any]:
    return [data for event, data in seen if event == "progress" and data["type"] == kind]


async def test_a_run_is_watched_from_its_first_piece_to_its_answer() -> None:
    replies = [
        {"toolCalls": [{"name": "brewing_time", "input": {"tea": "green"}}]},
        {"text": "Two minutes, and not a second more."},
    ]
    with FakeMessagesAPI(replies) as api:
        async with sample(api) as (_, client):
            seen = await frames(client, "/chat", TURN)
    assert ("answer", "Two minutes, and not a second more.") == seen[-1]
    assert ["brewing_time"] == [event["tool"] for event in told(seen, "tool_call")]
    pieces = [event["text"] for event in told(seen, "text")]
    assert "Two minutes, and not a second more." == "".join(pieces)
    assert 1 == len(told(seen, "done"))


async def test_a_turn_whose_reader_left_is_remembered() -> None:
    """FB-54: its answer is in the next prompt, once."""
    gate = Gate()
    replies = [
        FakeReply(text="Two minutes, and not a second more.", hold=gate, hold_after=4),
        FakeReply(text="As I said."),
    ]
    with FakeMessagesAPI(replies) as api:
        async with sample(api) as (service, client):
            async with client.stream("POST", "/chat", json=TURN) as response:
                event, _ = await anext(Events(response))
                assert "progress" == event
            held = service.streams["http"]._streams  # type: ignore[attr-defined]
            while not all(stream.closed for stream in held.values()):
                await asyncio.sleep(0)
            gate.open()
            await service.drain()
            seen = await frames(client, "/chat", TURN | {"message": "What?"})
    assert ("answer", "As I said.") == seen[-1]
    prompt = api.bodies[-1]["messages"]
    assert ["user", "assistant", "user"] == [message["role"] for message in prompt]
    assert "Two minutes, and not a second more." in str(prompt[1])
