"""Scripted replies of the fake Messages API, as one JSON message or as the events of a stream."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from typing import Any

from flowrt.ids import new_id
from flowrt.testing.replies import FakeReply

Block = dict[str, Any]
Event = dict[str, Any]

_PIECE = 12  # characters of a streamed piece


def sign(model: str, thinking: str) -> str:
    """The signature that the fake puts under thinking: another model or another text, another."""
    digest = hashlib.sha256(f"{model}\0{thinking}".encode()).digest()
    return base64.b64encode(digest).decode()


def signed_blocks(reply: FakeReply, model: str) -> list[Block]:
    """The content of a reply, with the thinking of a `thinking` entry signed."""
    blocks = reply.blocks()
    if reply.content is None and reply.thinking is not None:
        blocks[0] = {**blocks[0], "signature": sign(model, reply.thinking)}
    return blocks


def whole_message(
    blocks: list[Block], reason: str, model: str, usage: dict[str, Any]
) -> dict[str, Any]:
    """A reply as the body of a response. Arguments given as broken JSON text come out as {}."""
    content = [
        {**block, "input": {}} if isinstance(block.get("input"), str) else block for block in blocks
    ]
    return {
        "id": f"msg_{new_id()[:24]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": usage,
    }


def stream_events(
    blocks: list[Block], reason: str, model: str, usage: dict[str, Any]
) -> Iterator[Event]:
    """A reply as the events of a stream, in the API's order."""
    opening = whole_message([], reason, model, {**usage, "output_tokens": 1})
    yield {"type": "message_start", "message": {**opening, "stop_reason": None}}
    yield {"type": "ping"}
    for index, block in enumerate(blocks):
        start, deltas = _pieces(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": usage["output_tokens"]},
    }
    yield {"type": "message_stop"}


def _pieces(block: Block) -> tuple[Block, list[dict[str, Any]]]:
    """How a block starts, and its deltas. What has no deltas is in its start as a whole."""
    match block.get("type"):
        case "text":
            start = {**block, "text": ""}
            citations = start.pop("citations", None) or []
            deltas = _cut("text_delta", "text", block["text"])
            deltas += [{"type": "citations_delta", "citation": citation} for citation in citations]
            return start, deltas
        case "thinking":
            start = {**block, "thinking": "", "signature": ""}
            deltas = _cut("thinking_delta", "thinking", block["thinking"])
            deltas.append({"type": "signature_delta", "signature": block.get("signature", "")})
            return start, deltas
        case "tool_use" | "server_tool_use":
            value = block["input"]
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            # The API begins every call with an empty piece.
            empty = {"type": "input_json_delta", "partial_json": ""}
            return {**block, "input": {}}, [empty, *_cut("input_json_delta", "partial_json", text)]
    return block, []


def _cut(kind: str, field: str, text: str) -> list[dict[str, Any]]:
    return [{"type": kind, field: text[at : at + _PIECE]} for at in range(0, len(text), _PIECE)]
