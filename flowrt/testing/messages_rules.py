"""What the fake Messages API refuses, as the real one does: written apart from flowrt's own rules,
so that a gap in those shows."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")


def refusal(body: dict[str, Any], sent_thinking: dict[str, str]) -> str | None:
    """Why the request is refused, in the API's manner, or None where it is taken.

    `sent_thinking` maps the signatures the fake has sent out to the text they sign.
    """
    for key, kind in (("model", str), ("max_tokens", int), ("messages", list)):
        if not isinstance(body.get(key), kind):
            return f"{key}: Field required"
    messages = body["messages"]
    if not messages:
        return "messages: at least one message is required"
    return _tools_refusal(body.get("tools") or []) or _messages_refusal(messages, sent_thinking)


def _tools_refusal(tools: list[dict[str, Any]]) -> str | None:
    names = [tool.get("name", "") for tool in tools]
    for index, name in enumerate(names):
        if not _NAME.match(name):
            return f"tools.{index}.custom.name: String should match pattern '{_NAME.pattern}'"
    if len(set(names)) < len(names):
        return "tools: Tool names must be unique."
    return None


def _messages_refusal(messages: list[dict[str, Any]], sent: dict[str, str]) -> str | None:
    if messages[0].get("role") != "user":
        return "messages: first message must use the user role"
    if messages[-1].get("role") != "user":
        return "messages: the conversation must end with a user message"
    asked: list[str] = []
    before = ""
    for index, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role == before:
            return f"messages.{index}: roles must alternate between user and assistant"
        before = str(role)
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            return f"messages.{index}: content must not be empty"
        fault = _blocks_refusal(blocks, index, sent) or _pairs_refusal(blocks, asked, index)
        if fault:
            return fault
        asked = [b["id"] for b in blocks if b.get("type") == "tool_use"]
    if asked:
        return f"messages: `tool_use` ids were found without `tool_result` blocks: {asked}"
    return None


def _blocks_refusal(blocks: list[dict[str, Any]], at: int, sent: dict[str, str]) -> str | None:
    for index, block in enumerate(blocks):
        place = f"messages.{at}.content.{index}"
        match block.get("type"):
            case "text" if not block.get("text", "").strip():
                return f"{place}: text content blocks must be non-empty"
            case "thinking":
                if sent.get(str(block.get("signature"))) != block.get("thinking"):
                    return f"{place}: Invalid `signature` in `thinking` block"
            case "redacted_thinking":
                if str(block.get("data")) not in sent:
                    return f"{place}: Invalid `data` in `redacted_thinking` block"
            case "tool_use" if not isinstance(block.get("input"), dict):
                return f"{place}.tool_use.input: Input should be a valid dictionary"
    return None


def _pairs_refusal(blocks: list[dict[str, Any]], asked: list[str], at: int) -> str | None:
    kinds = [block.get("type") == "tool_result" for block in blocks]
    answered = [b["tool_use_id"] for b in blocks if b.get("type") == "tool_result"]
    if any(not earlier and later for earlier, later in pairwise(kinds)):
        return f"messages.{at}: `tool_result` blocks must come first in the message"
    missing = [call for call in asked if call not in answered]
    if missing:
        return (
            f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(missing)}"
        )
    strangers = [call for call in answered if call not in asked]
    if strangers:
        return (
            f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: "
            f"{', '.join(strangers)}"
        )
    if len(set(answered)) < len(answered):
        return f"messages.{at}: each tool_use must have a single result"
    return None
