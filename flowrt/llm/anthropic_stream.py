"""A reply put together from the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from flowrt.llm.model import Delta


class StreamedReply:
    """Collects the events of one stream into the message they describe.

    A block of a type that is not known stays as its start gave it.
    """

    def __init__(self, on_delta: Callable[[Delta], None] | None) -> None:
        self._on_delta = on_delta
        self._message: dict[str, Any] = {"content": []}
        self._arguments: dict[int, list[str]] = {}
        self.started = False
        self.delivered = False

    def feed(self, event: dict[str, Any]) -> None:
        """Take one event."""
        self.started = True
        match event["type"]:
            case "message_start":
                self._message = {**event["message"], "content": []}
            case "content_block_start":
                self._message["content"].append(event["content_block"])
            case "content_block_delta":
                self._delta(event["index"], event["delta"])
            case "message_delta":
                self._message |= {k: v for k, v in event["delta"].items() if v is not None}
                usage = {k: v for k, v in (event.get("usage") or {}).items() if v is not None}
                self._message["usage"] = {**(self._message.get("usage") or {}), **usage}

    def finish(self) -> dict[str, Any]:
        """The whole message."""
        for index, parts in self._arguments.items():
            self._message["content"][index]["input"] = _arguments("".join(parts))
        return self._message

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        block = self._message["content"][index]
        match delta["type"]:
            case "text_delta":
                block["text"] = block.get("text", "") + delta["text"]
                self._deliver(Delta("text", delta["text"], index))
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta["thinking"]
                self._deliver(Delta("thinking", delta["thinking"], index))
            case "signature_delta":
                block["signature"] = block.get("signature", "") + delta["signature"]
            case "input_json_delta":
                self._arguments.setdefault(index, []).append(delta["partial_json"])
                self._deliver(
                    Delta("tool_input", delta["partial_json"], index, block["name"], block["id"])
                )
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]

    def _deliver(self, delta: Delta) -> None:
        if self._on_delta is not None and delta.text:
            self.delivered = True
            self._on_delta(delta)


def _arguments(text: str) -> Any:
    """The arguments of a call. Cut off in the middle they are no JSON; such a call is never run."""
    if not text:
        return {}
    try:
        return json.loads(text)
    except ValueError:
        return {}
