"""Scripted replies of the fake Chat Completions API: one JSON body, or the chunks of a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from flowrt.ids import new_id
from flowrt.testing.replies import FakeReply

_PIECE = 12  # characters of a streamed piece

_FINISH_REASONS = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}

# Fields of a call's block that are not part of its function.
_CALL = ("type", "id", "name", "input")


def finish_reason(reply: FakeReply) -> str:
    """Why a reply ended, in this API's words; others stay as they are."""
    return _FINISH_REASONS.get(reply.reason, reply.reason)


def reply_message(reply: FakeReply) -> dict[str, Any]:
    """The message of a reply.

    Thinking is told as `reasoning_content`; further fields of a call's block go beside the call,
    and those of a block `{"type": "message"}` onto the message.
    """
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    calls: list[dict[str, Any]] = []
    for block in reply.blocks():
        match block["type"]:
            case "text":
                message["content"] = (message["content"] or "") + block["text"]
            case "thinking":
                message["reasoning_content"] = block["thinking"]
            case "tool_use":
                calls.append(_call(block))
            case "message":
                message |= {key: value for key, value in block.items() if key != "type"}
    if calls:
        message["tool_calls"] = calls
    return message


def _call(block: dict[str, Any]) -> dict[str, Any]:
    value = block["input"]
    arguments = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # Ids that a script leaves out begin as the Messages API's do.
    call_id = block["id"].replace("toolu_", "call_")
    more = {key: value for key, value in block.items() if key not in _CALL}
    function = {"name": block["name"], "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function, **more}


def whole_completion(
    message: dict[str, Any], reason: str, model: str, usage: dict[str, Any]
) -> dict[str, Any]:
    """A reply as the body of a response."""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return {**_head("chat.completion", model), "choices": [choice], "usage": usage}


def stream_chunks(
    message: dict[str, Any], reason: str, model: str, usage: dict[str, Any] | None
) -> Iterator[dict[str, Any]]:
    """A reply as the chunks of a stream; with `usage`, the last tells it and the others do not."""
    head = _head("chat.completion.chunk", model)
    silent: dict[str, Any] = {} if usage is None else {"usage": None}
    for delta in _deltas(message):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        yield {**head, "choices": [choice], **silent}
    last = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": reason}
    yield {**head, "choices": [last], **silent}
    if usage is not None:
        yield {**head, "choices": [], "usage": usage}


def _head(kind: str, model: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{new_id()[:24]}",
        "object": kind,
        "created": int(time.time()),
        "model": model,
        "service_tier": "default",
    }


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "", "refusal": None}
    told = ("role", "content", "tool_calls")
    for name, value in message.items():
        if name in told or value is None:
            continue
        pieces = _cut(value) if isinstance(value, str) else [value]
        yield from ({name: piece} for piece in pieces)
    yield from ({"content": piece} for piece in _cut(message["content"] or ""))
    for index, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        started = {**call, "function": {**call["function"], "arguments": ""}}
        yield {"tool_calls": [{"index": index, **started}]}
        for piece in _cut(arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _cut(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
