"""What the Messages API answers with a 400, for the fake to refuse too.

Written from the API's own error texts and not from `flowrt.llm.rules`, so that the two check each
other. `refusals` is lazy: the first text is the one that the API would have sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

Body = dict[str, Any]
Block = dict[str, Any]

_NAME_RULE = "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
_SIDES = {"tool_use": "assistant", "thinking": "assistant", "redacted_thinking": "assistant"}
_MOST_BREAKPOINTS = 4


def refusals(body: Any, *, alternate: bool = True, prefill: bool = False) -> Iterator[str]:
    """Why the API would refuse a request's body, the first reason first; nothing where it is fine.

    `alternate` also refuses two messages of one role in a row, which the API joins today and did
    not take before. `prefill` takes a last message from the assistant, as older models did.
    """
    yield from _shape(body)
    yield from _settings(body)
    yield from _system(body)
    yield from _tools(body)
    yield from _breakpoints(body)
    yield from _roles(body["messages"], alternate)
    for index, message in enumerate(body["messages"]):
        yield from _content(message, f"messages.{index}")
    yield from _pairs(body["messages"])
    yield from _end(body["messages"][-1], prefill)


def blocks_of(message: dict[str, Any]) -> list[Block]:
    """The content of a message as blocks, also where it is a plain string."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _shape(body: Any) -> Iterator[str]:
    if not isinstance(body, dict):
        yield "The request body is not an object"
    for name, kind in (("model", str), ("messages", list), ("max_tokens", int)):
        if name not in body:
            yield f"{name}: Field required"
        if not isinstance(body[name], kind) or isinstance(body[name], bool):
            yield f"{name}: Input should be a valid {kind.__name__}"
    for index, message in enumerate(body["messages"]):
        yield from _message_shape(message, f"messages.{index}")


def _message_shape(message: Any, place: str) -> Iterator[str]:
    if not isinstance(message, dict) or "role" not in message:
        yield f"{place}.role: Field required"
    content = message.get("content")
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        yield f"{place}.content: Input should be a valid list"
    for at, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            yield f"{place}.content.{at}.type: Field required"
        yield from _block_shape(block, f"{place}.content.{at}.{block['type']}")


_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "text": {"text": str},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    "tool_use": {"id": str, "name": str, "input": dict},
    "tool_result": {"tool_use_id": str},
    "image": {"source": dict},
    "document": {"source": dict},
}


def _block_shape(block: Block, place: str) -> Iterator[str]:
    for name, kind in _FIELDS.get(block["type"], {}).items():
        if name not in block:
            yield f"{place}.{name}: Field required"
        if not isinstance(block[name], kind):
            yield f"{place}.{name}: Input should be a valid {kind}"
    if block["type"] in ("thinking", "redacted_thinking") and "cache_control" in block:
        yield f"{place}.cache_control: Extra inputs are not permitted"


def _settings(body: Body) -> Iterator[str]:
    if body["max_tokens"] < 0:
        yield "max_tokens: Input should be greater than or equal to 0"
    thinking = body.get("thinking") or {}
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens", 0)
        if budget < 1024:
            yield "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
        if budget >= body["max_tokens"]:
            yield "`max_tokens` must be greater than `thinking.budget_tokens`."
    if thinking.get("type") in ("enabled", "adaptive") and body.get("temperature", 1) != 1:
        yield "`temperature` may only be set to 1 when thinking is enabled."
    choice = body.get("tool_choice") or {}
    if choice and not body.get("tools"):
        yield "tool_choice may only be specified while providing tools"
    if thinking.get("type") in ("enabled", "adaptive") and choice.get("type") in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."


def _system(body: Body) -> Iterator[str]:
    system = body.get("system", [])
    for block in [] if isinstance(system, str) else system:
        if not block["text"].strip():
            yield "system: text content blocks must contain non-whitespace text"


def _tools(body: Body) -> Iterator[str]:
    names = []
    for index, tool in enumerate(body.get("tools", [])):
        name = tool.get("name", "")
        if not _NAME.match(name):
            yield f"tools.{index}.custom.name: {_NAME_RULE}"
        if "type" not in tool and not isinstance(tool.get("input_schema"), dict):
            yield f"tools.{index}.custom.input_schema: Field required"
        names.append(name)
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."


def _breakpoints(body: Body) -> Iterator[str]:
    system = body.get("system", [])
    blocks = [*body.get("tools", []), *([] if isinstance(system, str) else system)]
    for message in body["messages"]:
        blocks += blocks_of(message)
    count = sum("cache_control" in block for block in blocks)
    if count > _MOST_BREAKPOINTS:
        yield (
            f"A maximum of {_MOST_BREAKPOINTS} blocks with cache_control may be provided. "
            f"Found {count}."
        )


def _roles(messages: list[dict[str, Any]], alternate: bool) -> Iterator[str]:
    if not messages:
        yield "messages: at least one message is required"
    for index, message in enumerate(messages):
        if message["role"] not in ("user", "assistant"):
            yield f"messages.{index}.role: Input should be 'user' or 'assistant'"
    if messages[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    for before, after in pairwise(messages):
        if alternate and before["role"] == after["role"]:
            role = after["role"]
            yield (
                'messages: roles must alternate between "user" and "assistant", '
                f'but found multiple "{role}" roles in a row'
            )


def _content(message: dict[str, Any], place: str) -> Iterator[str]:
    if not message["content"]:
        yield f"{place}: all messages must have non-empty content"
    for at, block in enumerate(blocks_of(message)):
        kind = block["type"]
        side = _SIDES.get(kind, message["role"])
        if side != message["role"] or (kind == "tool_result" and message["role"] != "user"):
            yield f"{place}.content.{at}: `{kind}` blocks may not be in {message['role']} messages"
        if kind == "text":
            yield from _text(block["text"])
        if kind == "tool_use" and not _NAME.match(block["name"]):
            yield f"{place}.content.{at}.tool_use.name: {_NAME_RULE}"
        if kind == "tool_result":
            yield from _result(block, f"{place}.content.{at}.tool_result")


def _text(text: str) -> Iterator[str]:
    if not text:
        yield "messages: text content blocks must be non-empty"
    if not text.strip():
        yield "messages: text content blocks must contain non-whitespace text"


def _result(block: Block, place: str) -> Iterator[str]:
    content = block.get("content")
    if block.get("is_error") and not content:
        yield f"{place}: content cannot be empty if `is_error` is true"
    for part in content if isinstance(content, list) else []:
        if part.get("type") == "text":
            yield from _text(part["text"])


def _pairs(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Each call answered once, in the very next message, by results that lead it."""
    calls: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        blocks = blocks_of(message)
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        leading = [block["tool_use_id"] for block in blocks[: len(results)]
                   if block["type"] == "tool_result"]  # fmt: skip
        # Whatever stands before a result makes the API overlook it: it reports the call (FB-13).
        yield from _unanswered([call for call in calls if call not in leading], index - 1)
        for at, result in enumerate(results):
            if result not in calls:
                yield (
                    f"messages.{index}.content.{at}: unexpected `tool_use_id` found in "
                    f"`tool_result` blocks: {result}. Each `tool_result` block must have a "
                    "corresponding `tool_use` block in the previous message."
                )
            if results.count(result) > 1:
                yield (
                    f"messages.{index}.content: each tool_use must have a single result. "
                    f"Found multiple `tool_result` blocks with id: {result}"
                )
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for at, call in enumerate(calls):
            if call in seen:
                yield f"messages.{index}.content.{at}: `tool_use` ids must be unique"
            seen.add(call)
    yield from _unanswered(calls, len(messages) - 1)


def _unanswered(calls: list[str], index: int) -> Iterator[str]:
    if calls:
        yield (
            f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
            f"after: {', '.join(calls)}. Each `tool_use` block must have a corresponding "
            "`tool_result` block in the next message."
        )


def _end(message: dict[str, Any], prefill: bool) -> Iterator[str]:
    if message["role"] != "assistant":
        return
    last = blocks_of(message)[-1]
    if last["type"] == "text" and last["text"] != last["text"].rstrip():
        yield "messages: final assistant content cannot end with trailing whitespace"
    if not prefill:
        yield (
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
