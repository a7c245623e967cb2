"""What a model thought, kept so that it goes back to the same model byte for byte.

Chat Completions has no thinking blocks. Servers put what a model thought beside its text, each in
fields of its own, and some want it back: without its thought signatures Gemini refuses the next
request of a tool round, and DeepSeek and OpenRouter's models lose the thread (dialect 9, item 23).
All of it is kept in one `thinking` block::

    {"type": "thinking", "thinking": "what can be read of it", "signature": "OPENAI qwen3",
     "echo": {"message": {field: value}, "calls": {id: {field: value}}}}

The signature says which model may get it. Nobody else does: other models refuse the fields, and the
Messages API refuses the block.
"""

from __future__ import annotations

from typing import Any

from flowrt.llm.model import Block

MESSAGE_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "extra_content")
CALL_FIELDS = ("extra_content",)

TEXT_FIELDS = ("reasoning_content", "reasoning")
"""The fields that hold text to read; a server sends one of them."""

_GROWING = ("text", "summary", "data")


def is_echo(block: Block) -> bool:
    """Whether this is thinking that came over Chat Completions."""
    return block.get("type") == "thinking" and "echo" in block


def thinking_block(
    signature: str, text: str, message: dict[str, Any], calls: dict[str, dict[str, Any]]
) -> Block:
    """The block that keeps the fields of a reply's message and of its calls, by id."""
    if "reasoning_details" in message:
        # They hold the text too, and servers that know them want them alone.
        message = {key: value for key, value in message.items() if key not in TEXT_FIELDS}
    echo = {"message": message, "calls": calls}
    return {"type": "thinking", "thinking": text, "signature": signature, "echo": echo}


def echo_of(content: list[Block], signature: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields to send back on a message and on its calls, by id, if `signature` gave them."""
    for block in content:
        if is_echo(block) and block["signature"] == signature:
            return block["echo"]["message"], block["echo"]["calls"]
    return {}, {}


def merge(fields: dict[str, Any], piece: dict[str, Any], names: tuple[str, ...]) -> None:
    """Add what a piece of a stream holds of the fields `names`: texts and lists grow."""
    for name in names:
        value = piece.get(name)
        if not value:
            continue
        if isinstance(value, str):
            fields[name] = fields.get(name, "") + value
        elif isinstance(value, list):
            _grow(fields.setdefault(name, []), value)
        else:
            fields[name] = {**fields.get(name, {}), **value}


def _grow(entries: list[Any], pieces: list[Any]) -> None:
    """Put streamed entries of `reasoning_details` together: those of one index and type are one."""
    for piece in pieces:
        known = next((entry for entry in entries if _same(entry, piece)), None)
        if known is None:
            entries.append(dict(piece))
            continue
        for key, value in piece.items():
            if key in _GROWING and isinstance(known.get(key), str) and isinstance(value, str):
                known[key] += value
            elif value is not None:
                known[key] = value


def _same(entry: dict[str, Any], piece: dict[str, Any]) -> bool:
    return piece.get("index") is not None and (entry.get("index"), entry.get("type")) == (
        piece["index"],
        piece.get("type"),
    )
