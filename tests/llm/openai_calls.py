"""A model and an embedding model at the fake Chat Completions API."""

from __future__ import annotations

import json
from typing import Any

from flowrt.clock import Clock, SystemClock
from flowrt.llm.model import Reply, Request
from flowrt.llm.openai import ChatSettings, OpenAIModel
from flowrt.llm.openai_client import Access, OpenAIClient
from flowrt.llm.openai_embedding import OpenAIEmbedding
from flowrt.llm.openai_reply import ReplyStream
from flowrt.testing import FakeCompletionsAPI

SIGNATURE = "OPENAI m"

KEY = "sk-proj-very-secret-key-000000"


def client(
    api: FakeCompletionsAPI | str, clock: Clock | None = None, **access: Any
) -> OpenAIClient:
    url = api if isinstance(api, str) else api.base_url
    given = {"name": "gpt", "api_key": KEY, "base_url": url, "clock": clock or SystemClock()}
    return OpenAIClient(Access(**{**given, **access}))


def model(
    api: FakeCompletionsAPI | str,
    clock: Clock | None = None,
    settings: dict[str, Any] | None = None,
    **access: Any,
) -> OpenAIModel:
    chosen = ChatSettings(**{"model": "gpt-5.4", **(settings or {})})
    return OpenAIModel(client(api, clock, **access), chosen)


def embedding(
    api: FakeCompletionsAPI | str, clock: Clock | None = None, **access: Any
) -> OpenAIEmbedding:
    return OpenAIEmbedding(client(api, clock, **access), "text-embedding-3-small")


async def once(gpt: OpenAIModel, request: Request, on_delta: Any = None) -> Reply:
    async with gpt:
        return await gpt.complete(request, on_delta)


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


LOOK = {"name": "look", "description": "Looks it up.", "input_schema": schema()}


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> bytes:
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return b"data: " + json.dumps({"model": "m", "choices": choices, **more}).encode() + b"\n\n"


def streamed(*events: bytes) -> Reply:
    stream = ReplyStream(None, SIGNATURE)
    for event in events:
        stream.feed(event)
    return stream.reply()


DONE = b"data: [DONE]\n\n"
