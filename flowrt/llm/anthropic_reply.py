"""Replies of the Messages API: read from JSON, or put together from the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from flowrt.llm.anthropic_errors import event_failure
from flowrt.llm.failures import BrokenReply
from flowrt.llm.model import Block, Delta, Reply, Usage
from flowrt.message import clean

# What later parts rely on, by type of block. Types that are not here are kept as they are.
_FIELDS: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "thinking": {"thinking": str},
    "tool_use": {"id": str, "name": str, "input": dict},
}


def read_reply(message: Any) -> Reply:
    """The reply in a decoded message. Raises `BrokenReply` where it is not one.

    Checked here once: what a gateway sends out of shape would otherwise be stored, and break each
    later run of the thread.
    """
    match message:
        case {"content": list(content), "stop_reason": str(stop_reason)}:
            for index, block in enumerate(content):
                _check_block(block, f"content[{index}]")
            usage = read_usage(message.get("usage"))
            return Reply(clean(content), stop_reason, str(message.get("model", "")), usage)
    raise BrokenReply(f"content or stop_reason is missing in {json.dumps(message)[:200]}")


def _check_block(block: Any, place: str) -> None:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        raise BrokenReply(f"{place} has no type: {json.dumps(block)[:200]}")
    for name, kind in _FIELDS.get(block["type"], {}).items():
        if not isinstance(block.get(name), kind):
            raise BrokenReply(f"{place}.{name} is missing in {json.dumps(block)[:200]}")


def read_usage(usage: Any) -> Usage | None:
    """Tokens in flowrt's names; None where the provider reported none.

    Raises `BrokenReply` where a figure is not a number.
    """
    if not usage:
        return None
    try:
        details = usage.get("output_tokens_details") or {}
        return Usage(
            input_tokens=int(usage.get("input_tokens") or 0),
            output_tokens=int(usage.get("output_tokens") or 0),
            cached_tokens=int(usage.get("cache_read_input_tokens") or 0),
            cache_write_tokens=int(usage.get("cache_creation_input_tokens") or 0),
            thinking_tokens=int(details.get("thinking_tokens") or 0),
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise BrokenReply(f"the usage is malformed: {json.dumps(usage)[:200]}") from error


class ReplyStream:
    """Puts a streamed reply together and hands out its deltas as they come.

    `delivered` says whether any was handed out: from then on a broken stream cannot be repeated
    without saying things twice (FB-23). `complete` says that the provider has finished.
    """

    def __init__(self, on_delta: Callable[[Delta], None] | None) -> None:
        self._on_delta = on_delta
        self._rest = b""
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: list[Block] = []
        self._arguments: dict[int, list[str]] = {}
        self._cut_off = False
        self.delivered = False
        self.complete = False

    def feed(self, chunk: bytes) -> None:
        """Take what arrived of the stream. Raises `BrokenReply` where it reports an error.

        Each event is one `data` line of JSON. Lines end in a line feed only: Unicode's other line
        ends may stand in a model's text, where text-based readers would cut the JSON in two.
        """
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._handle(line[5:])

    def reply(self) -> Reply:
        """The whole reply. Raises `BrokenReply` where the stream ended too early."""
        if not self.complete:
            raise BrokenReply("the stream ended before the reply was complete")
        for index in list(self._arguments):
            self._finish(index)
        message = {**self._message, "content": self._blocks, "usage": self._usage}
        if self._cut_off:
            # Arguments that do not parse were cut off, whatever the provider calls it: a reply
            # that ended so is never acted upon (FB-19).
            message["stop_reason"] = "max_tokens"
        return read_reply(message)

    def _handle(self, data: bytes) -> None:
        try:
            delta = self._take(json.loads(data))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise BrokenReply(f"a stream event is malformed: {data[:200]!r}") from error
        if delta is not None and self._on_delta is not None:
            self.delivered = True
            self._on_delta(delta)

    def _take(self, event: dict[str, Any]) -> Delta | None:
        match event["type"]:
            case "message_start":
                self._message = dict(event["message"])
                self._count(event["message"].get("usage"))
            case "content_block_start":
                self._blocks.append(dict(event["content_block"]))
            case "content_block_delta":
                return self._add(event["index"], event["delta"])
            case "content_block_stop":
                self._finish(event["index"])
            case "message_delta":
                self._message |= event["delta"]
                self._count(event.get("usage"))
            case "message_stop":
                self.complete = True
            case "error":
                raise event_failure(event)
        return None

    def _count(self, usage: dict[str, Any] | None) -> None:
        """Later figures are totals and replace earlier ones; some are only reported first."""
        if usage:
            self._usage |= {key: value for key, value in usage.items() if value is not None}

    def _add(self, index: int, delta: dict[str, Any]) -> Delta | None:
        block = self._blocks[index]
        match delta["type"]:
            case "text_delta":
                block["text"] += delta["text"]
                return Delta("text", delta["text"], index) if delta["text"] else None
            case "thinking_delta":
                block["thinking"] += delta["thinking"]
                return Delta("thinking", delta["thinking"], index) if delta["thinking"] else None
            case "input_json_delta":
                piece = delta["partial_json"]
                self._arguments.setdefault(index, []).append(piece)
                name, call = block.get("name", ""), block.get("id", "")
                return Delta("tool_input", piece, index, name, call) if piece else None
            case "signature_delta":
                block["signature"] = block.get("signature", "") + delta["signature"]
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        return None

    def _finish(self, index: int) -> None:
        """Decode the arguments of a call, which come as pieces of JSON."""
        text = "".join(self._arguments.pop(index, ()))
        if not text:
            return
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            self._cut_off = True
            value = {"INVALID_JSON": text}
        self._blocks[index]["input"] = value
