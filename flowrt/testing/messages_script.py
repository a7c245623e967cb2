"""Scripted replies of the fake Messages API, as one JSON message or as the events of a stream."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from flowrt.ids import new_id
from flowrt.llm.scripted import ScriptedReply

Block = dict[str, Any]
Event = dict[str, Any]

_PIECE = 12  # characters of a streamed piece


class Gate:
    """Holds a reply back until the test has seen the request come in and lets the answer go.

    One gate serves one call: `await gate.reached()` (or `wait()` outside of a loop), then `open()`.
    """

    def __init__(self) -> None:
        self._reached: Future[None] = Future()
        self._opened: Future[None] = Future()

    async def reached(self) -> None:
        """Wait until a request is being held."""
        await asyncio.shield(asyncio.wrap_future(self._reached))

    def wait(self, timeout: float = 10.0) -> None:
        """The same without an event loop. Raises `TimeoutError` after `timeout` seconds."""
        self._reached.result(timeout)

    def open(self) -> None:
        """Let the held reply go, or the next that comes here pass."""
        if not self._opened.done():
            self._opened.set_result(None)

    async def pass_through(self) -> None:
        """The server's side: say that the request is here, and wait."""
        if not self._reached.done():
            self._reached.set_result(None)
        await asyncio.shield(asyncio.wrap_future(self._opened))


class FakeReply(ScriptedReply):
    """A `ScriptedReply` with what only happens on a network; `error` is the HTTP status."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        arbitrary_types_allowed=True,
    )

    headers: dict[str, str] = Field(
        default_factory=dict, description="Response headers, such as `retry-after`."
    )
    stream_error: int | None = Field(
        default=None,
        ge=0,
        description="Send an `overloaded_error` event after so many events of the stream.",
    )
    disconnect: int | None = Field(
        default=None,
        ge=0,
        description="Break the connection after so many events, or before the JSON message.",
    )
    hold: Gate | None = Field(default=None, description="Wait until the test opens the gate.")
    hold_after: int = Field(default=0, ge=0, description="Events of a stream sent before that.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        given = (self.text, self.content, self.error, self.thinking, self.stop_reason)
        network = (self.disconnect, self.stream_error)
        if not self.tool_calls and all(value is None for value in (*given, *network)):
            raise ValueError(
                "a reply needs text, toolCalls, content, thinking, error or disconnect"
            )
        return self


def parse_reply(entry: Any) -> FakeReply:
    """A reply from its short forms: a text, or a mapping with the fields of `FakeReply`."""
    if isinstance(entry, FakeReply):
        return entry
    if isinstance(entry, str):
        return FakeReply(text=entry)
    if isinstance(entry, ScriptedReply):
        return FakeReply(**entry.model_dump())
    return FakeReply.model_validate(entry)


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
