"""A model at the fake API, a clock that does not wait, and requests to send."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from flowrt.llm.anthropic import AnthropicModel
from flowrt.llm.model import Reply, Request
from flowrt.testing import FakeMessagesAPI

KEY = "sk-ant-very-secret-key-000000"


class Waits:
    """A clock on which waiting takes no time; `slept` are the waits."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def model(api: FakeMessagesAPI | str, **settings: Any) -> AnthropicModel:
    url = api if isinstance(api, str) else api.base_url
    return AnthropicModel(**{"api_key": KEY, "name": "claude", "base_url": url, **settings})


async def once(claude: AnthropicModel, request: Request, on_delta: Any = None) -> Reply:
    async with claude:
        return await claude.complete(request, on_delta)


def ask(text: str = "hello", **settings: Any) -> Request:
    return Request(
        messages=[{"role": "user", "content": [{"type": "text", "text": text}]}], **settings
    )


def after(content: list[dict[str, Any]], *answer: dict[str, Any]) -> Request:
    """The request that goes on from a reply with this content."""
    return Request(
        messages=[
            *ask().messages,
            {"role": "assistant", "content": content},
            {"role": "user", "content": list(answer)},
        ]
    )


def result(call: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": "found"}


TEXT = {"type": "text", "text": "go on"}

# One of each kind of block, some that nobody knows, and text that naive readers cut or change.
CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "let me\u2028see\x85", "signature": "c2lnbmVk+/="},
    {"type": "redacted_thinking", "data": "b3BhcXVl"},
    {"type": "text", "text": 'so — "naïve"\r\n\u2029 😀', "citations": [{"cited_text": "x"}]},
    {"type": "new_block", "payload": {"deep": [1, 2.5, None]}, "more": "as it is"},
    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"q": "é", "n": 2**60}},
]
