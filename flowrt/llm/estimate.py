"""Estimates: about how many tokens a message is, before any provider has counted it.

Characters divided by four, which is near the truth for English prose. Only proportions matter: the
meter (`flowrt.memory.meter`) fits them to what the provider reports.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

IMAGE_TOKENS = 1600
"""An image or document block, whatever its bytes. Anthropic documents about width·height/750 tokens
for an image and resizes what exceeds about 1.15 megapixels. Counting base64 as text made a 3 MB
picture a million tokens (FB-27)."""

# What each message and block adds besides its text: role, ids, punctuation.
_PER_BLOCK = 4


def estimate_message(message: dict[str, Any]) -> int:
    """The estimate of one message with everything in it."""
    return estimate_blocks(message["content"])


def estimate_blocks(blocks: Iterable[dict[str, Any]]) -> int:
    """The estimate of content blocks: text, thinking, arguments, results, pictures."""
    characters = 0
    tokens = 0
    for block in blocks:
        tokens += _PER_BLOCK
        match block.get("type"):
            case "text":
                characters += len(block["text"])
            case "tool_use":
                characters += len(block["name"]) + _json_length(block.get("input"))
            case "tool_result":
                content = block.get("content")
                if isinstance(content, list):
                    tokens += estimate_blocks(content)
                else:
                    characters += len(content or "")
            case "document" if (block.get("source") or {}).get("type") == "text":
                characters += len(block["source"]["data"])
            case "image" | "document":
                tokens += IMAGE_TOKENS
            case _:
                characters += _json_length(block)
    return tokens + characters // 4


def estimate_fixed(system: list[dict[str, Any]], tools: list[dict[str, Any]]) -> int:
    """The estimate of what rides on every request: system prompt and tool schemas."""
    return estimate_blocks(system) + sum(_json_length(tool) // 4 for tool in tools)


def _json_length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
