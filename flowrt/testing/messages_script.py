"""The script of the fake Messages API: what it answers, and how its answers are sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from flowrt.ids import new_id
from flowrt.llm.scripted import ScriptedReply


class FakeReply(ScriptedReply):
    """A `ScriptedReply` with what only HTTP can do."""

    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers of a failure, such as retry-after."
    )
    stream_error: str | None = Field(
        default=None,
        description="An error event of this type in the middle of the stream, such as "
        "overloaded_error.",
    )
    stream_error_after: int = Field(
        default=1, description="How many events come before that error event."
    )
    disconnect: bool = Field(default=False, description="Close the connection without an answer.")


class Gate:
    """Holds a reply back until the test opens it: acting in the middle of a call without sleeping.

    `reached` is set when a request waits at the gate; `open` lets it pass.
    """

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._opened = threading.Event()

    def open(self) -> None:
        """Let the waiting request and all later ones pass."""
        self._opened.set()

    def wait(self, seconds: float = 30.0) -> bool:
        """Called by the server."""
        self.reached.set()
        return self._opened.wait(seconds)


def count_tokens(body: dict[str, Any]) -> int:
    """Tokens of a whole request: system, tools and messages.

    A counter of its own, three bytes of JSON a token, unlike flowrt's estimate of four characters:
    the meter has something to learn. A picture counts 1,500 whatever its bytes.
    """
    counted = {key: body.get(key) for key in ("system", "tools", "messages")}
    pictures = 0

    def without_pictures(value: Any) -> Any:
        nonlocal pictures
        if isinstance(value, dict):
            if value.get("type") in ("image", "document"):
                pictures += 1
                return {}
            return {k: without_pictures(v) for k, v in value.items() if k != "cache_control"}
        if isinstance(value, list):
            return [without_pictures(item) for item in value]
        return value

    text = json.dumps(without_pictures(counted), ensure_ascii=False)
    return len(text.encode("utf-8", "replace")) // 3 + 1500 * pictures


def message_json(reply: FakeReply, body: dict[str, Any], usage: dict[str, int]) -> dict[str, Any]:
    """The reply as the API's message object."""
    return {
        "id": f"msg_{new_id()[:24]}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": reply.blocks(),
        "stop_reason": reply.reason,
        "stop_sequence": None,
        "usage": usage,
    }


def error_json(status: int, text: str) -> dict[str, Any]:
    """The API's error object."""
    kinds = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        529: "overloaded_error",
    }
    return {
        "type": "error",
        "error": {"type": kinds.get(status, "api_error"), "message": text},
        "request_id": f"req_{new_id()[:24]}",
    }


def stream_events(message: dict[str, Any], reply: FakeReply) -> Iterator[str]:
    """The reply as server-sent events, with the scripted error in the middle where there is one."""
    for number, event in enumerate(_events(message)):
        if reply.stream_error is not None and number == reply.stream_error_after:
            error = {"type": reply.stream_error, "message": reply.message or reply.stream_error}
            yield _frame({"type": "error", "error": error})
            return
        yield _frame(event)


def _frame(event: dict[str, Any]) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    usage = message["usage"]
    start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(message["content"]):
        opened, deltas = _pieces(block)
        yield {"type": "content_block_start", "index": index, "content_block": opened}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": {"output_tokens": usage["output_tokens"]},
    }
    yield {"type": "message_stop"}


def _pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in _cut(block["text"])]
            return {**block, "text": ""}, deltas
        case "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": piece} for piece in _cut(block["thinking"])
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, deltas
        case "tool_use":
            text = json.dumps(block["input"], ensure_ascii=False)
            deltas = [{"type": "input_json_delta", "partial_json": p} for p in _cut(text)]
            return {**block, "input": {}}, deltas
    return block, []


def _cut(text: str) -> list[str]:
    return [text[at : at + 10] for at in range(0, len(text), 10)]
