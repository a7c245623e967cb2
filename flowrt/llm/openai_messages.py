"""The Messages API's blocks as chat messages.

Texts go out as one string wherever there is nothing but text: servers that take no list of parts
are many, and those that take no string are none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from flowrt.llm.model import Block, Request
from flowrt.llm.openai_reasoning import echo_of
from flowrt.llm.request import join_turns

NO_OUTPUT = "(no output)"
"""What a result without content says: several servers refuse an empty text."""

FAILED = "ERROR: "
"""In front of the text of a result with `is_error`, which chat messages have no field for."""

_UNSENT = "[a file that this model cannot be shown]"


def chat_messages(request: Request, signature: str, *, marks: bool = False) -> list[dict[str, Any]]:
    """The system prompt and messages of a request.

    `signature` says whose thinking may go along. With `marks`, `cache_control` is kept on texts.
    """
    chat: list[dict[str, Any]] = []
    if request.system:
        chat.append({"role": "system", "content": _texts(request.system, "\n\n", marks)})
    for message in _sendable(request.messages):
        if message["role"] == "assistant":
            chat.append(_assistant(message["content"], signature, marks))
        else:
            chat += _user(message["content"], marks)
    return chat


def chat_tools(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tools as functions. A schema without `properties` is refused, so it gets an empty one."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool.get("description", ""),
                "parameters": {"type": "object", "properties": {}, **tool["input_schema"]},
            },
        }
        for tool in tools
    ]


def chat_tool_choice(choice: dict[str, Any]) -> Any:
    """A tool choice of the Messages API in this API's words."""
    if choice["type"] == "tool":
        return {"type": "function", "function": {"name": choice["name"]}}
    return {"auto": "auto", "any": "required", "none": "none"}[choice["type"]]


def _sendable(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages without turns of which nothing would be left."""
    if all(any(map(_goes_out, message["content"])) for message in messages):
        return messages
    return join_turns([m for m in messages if any(map(_goes_out, m["content"]))])


def _goes_out(block: Block) -> bool:
    return block.get("type") in ("text", "tool_use", "tool_result", "image", "document")


def _assistant(content: list[Block], signature: str, marks: bool) -> dict[str, Any]:
    said, echoed = echo_of(content, signature)
    texts = [block for block in content if block.get("type") == "text"]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": _texts(texts, "", marks) if texts else None,
        **said,
    }
    calls = [
        {
            "id": block["id"],
            "type": "function",
            # Written as OpenAI's models write it: what it has cached begins with the same bytes.
            "function": {"name": block["name"], "arguments": _json(block["input"])},
            **echoed.get(block["id"], {}),
        }
        for block in content
        if block.get("type") == "tool_use"
    ]
    if calls:
        message["tool_calls"] = calls
    return message


def _user(content: list[Block], marks: bool) -> Iterator[dict[str, Any]]:
    """Results, each as a message of its own, and then what the user said.

    A `tool` message holds text alone, so the pictures in results follow with the user's words.
    """
    shown: list[Block] = []
    for block in content:
        if block.get("type") == "tool_result":
            yield _result(block, marks)
            shown += _pictures(block)
    shown += [b for b in content if b.get("type") != "tool_result" and _goes_out(b)]
    if not shown:
        return
    if all(block["type"] == "text" for block in shown):
        yield {"role": "user", "content": _texts(shown, "\n\n", marks)}
    else:
        yield {"role": "user", "content": [_part(block, marks) for block in shown]}


def _result(block: Block, marks: bool) -> dict[str, Any]:
    content = block.get("content") or ""
    if isinstance(content, list):
        content = "\n".join(part["text"] for part in content if part.get("type") == "text")
        if not content and any(_pictures(block)):
            content = "(the file follows)"
    text = (FAILED if block.get("is_error") else "") + (content or NO_OUTPUT)
    mark = {"cache_control": block["cache_control"]} if "cache_control" in block else {}
    return {
        "role": "tool",
        "tool_call_id": block["tool_use_id"],
        "content": _texts([{"type": "text", "text": text, **mark}], "", marks),
    }


def _pictures(block: Block) -> list[Block]:
    content = block.get("content")
    files = [part for part in content if part.get("type") in ("image", "document")] if (
        isinstance(content, list)
    ) else []  # fmt: skip
    if not files:
        return []
    return [{"type": "text", "text": f"From the result of call {block['tool_use_id']}:"}, *files]


def _texts(blocks: list[Block], between: str, marks: bool) -> str | list[dict[str, Any]]:
    if marks and any("cache_control" in block for block in blocks):
        return [_part(block, marks) for block in blocks]
    return between.join(block["text"] for block in blocks)


def _part(block: Block, marks: bool) -> dict[str, Any]:
    match block:
        case {"type": "text", "text": text}:
            part = {"type": "text", "text": text}
        case {"type": "image", "source": source}:
            part = {"type": "image_url", "image_url": {"url": _url(source)}}
        case {"type": "document", "source": {"type": "text", "data": text}}:
            name = block.get("title")
            part = {"type": "text", "text": f"{name}:\n{text}" if name else text}
        case {"type": "document", "source": {"type": "base64"} as source}:
            name = block.get("title") or "document.pdf"
            part = {"type": "file", "file": {"filename": name, "file_data": _url(source)}}
        case _:
            part = {"type": "text", "text": _UNSENT}
    if marks and "cache_control" in block:
        part["cache_control"] = block["cache_control"]
    return part


def _url(source: dict[str, Any]) -> str:
    if source["type"] == "url":
        return str(source["url"])
    return f"data:{source['media_type']};base64,{source['data']}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
