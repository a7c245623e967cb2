"""Tokens and prompt cache of the fake Messages API: deterministic, and honest about everything.

The count is not chars/4 on purpose: what learns from reported usage must have something to learn.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from flowrt.testing.messages_refusals import Body, blocks_of

PER_BYTE = 0.3
"""Tokens for each byte of a block's JSON."""

PICTURE = 1500
"""Tokens of an image or document, whatever its size."""

_PER_BLOCK = 3
_PER_REQUEST = 9

# How many blocks before a breakpoint the API looks for a prefix that it knows.
_LOOKBACK = 20


def count_block(block: Any) -> int:
    """Tokens of one content block, system block or tool."""
    if block.get("type") in ("image", "document"):
        return PICTURE
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        return _PER_BLOCK + sum(count_block(part) for part in block["content"])
    return _PER_BLOCK + round(PER_BYTE * len(_encode(block)))


def count_request(body: Body) -> int:
    """Tokens of a whole prompt: tools, system, messages."""
    return _PER_REQUEST + sum(count_block(block) for _, block in _parts(body))


class PromptCache:
    """Remembers the prefixes that requests marked with `cache_control`.

    Unlike the API it forgets nothing and has no smallest prefix.
    """

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def bill(self, body: Body) -> dict[str, int]:
        """The usage of a prompt: what was read from the cache, written to it, and neither."""
        running = hashlib.sha256(str(body["model"]).encode())
        tokens = 0
        prefixes: list[tuple[bytes, int]] = []
        marked: list[int] = []
        for index, (place, block) in enumerate(_parts(body)):
            running.update(place.encode() + _encode(block))
            tokens += count_block(block)
            prefixes.append((running.digest(), tokens))
            if "cache_control" in block:
                marked.append(index)
        read = max((self._read(prefixes, index) for index in marked), default=0)
        covered = prefixes[marked[-1]][1] if marked else 0
        self._known.update(prefixes[index][0] for index in marked)
        return {
            "input_tokens": _PER_REQUEST + tokens - covered,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": covered - read,
        }

    def _read(self, prefixes: list[tuple[bytes, int]], index: int) -> int:
        for digest, tokens in reversed(prefixes[max(0, index - _LOOKBACK) : index + 1]):
            if digest in self._known:
                return tokens
        return 0


def _parts(body: Body) -> list[tuple[str, Any]]:
    """Everything in a prompt, in the order in which the API reads it, each with where it stands."""
    system = body.get("system", [])
    parts = [("tools", tool) for tool in body.get("tools", [])]
    if isinstance(system, str):
        parts.append(("system", {"type": "text", "text": system}))
    else:
        parts += [("system", block) for block in system]
    for message in body["messages"]:
        parts += [(message["role"], block) for block in blocks_of(message)]
    return parts


def _encode(block: dict[str, Any]) -> bytes:
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    return json.dumps(bare, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
