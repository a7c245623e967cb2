"""Tokens, prompt cache and vectors of the fake: deterministic, and honest about everything.

The count is not chars/4 on purpose: what learns from reported usage must have something to learn.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any

from flowrt.testing.messages_tokens import PER_BYTE, PICTURE

Body = dict[str, Any]

DIMENSIONS = 1536
"""Numbers of a vector where the request does not say."""

_PER_MESSAGE = 3
_PER_REQUEST = 9
_PLACES = 8  # numbers of a vector that one word changes
_WORD = re.compile(r"\w+")


def count_text(text: str) -> int:
    """Tokens of a text."""
    return round(PER_BYTE * len(text.encode(errors="replace")))


def count_message(message: dict[str, Any]) -> int:
    """Tokens of one message, or of one tool."""
    pictures = 0
    content = message.get("content")
    if isinstance(content, list):
        texts = [part for part in content if part["type"] == "text"]
        pictures = len(content) - len(texts)
        message = {**message, "content": texts}
    return _PER_MESSAGE + PICTURE * pictures + count_text(_encode(message))


def count_request(body: Body) -> int:
    """Tokens of a whole prompt: tools and messages."""
    return _PER_REQUEST + sum(map(count_message, [*body.get("tools", []), *body["messages"]]))


class PromptCache:
    """Remembers the beginnings of all prompts, which is cached without being asked for.

    Unlike the API it forgets nothing and has no smallest prefix.
    """

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def read(self, body: Body) -> int:
        """The tokens of a prompt's longest known beginning; afterwards all of it is known."""
        running = hashlib.sha256(str(body["model"]).encode())
        tokens = cached = 0
        for part in [*body.get("tools", []), *body["messages"]]:
            running.update(_encode(part).encode(errors="replace") + b"\0")
            tokens += count_message(part)
            digest = running.digest()
            if digest in self._known:
                cached = tokens
            self._known.add(digest)
        return cached


def vector(text: str, model: str, dimensions: int) -> list[float]:
    """A unit vector of the words in a text: texts that share words are near, others are not."""
    numbers = [0.0] * dimensions
    for word in _WORD.findall(text.lower()) or [text]:
        for place in range(_PLACES):
            digest = hashlib.sha256(f"{model}\0{word}\0{place}".encode(errors="replace")).digest()
            sign = 1.0 if digest[0] & 1 else -1.0
            numbers[int.from_bytes(digest[1:9], "big") % dimensions] += sign
    length = math.sqrt(sum(number * number for number in numbers))
    if not length:
        return [1.0, *numbers[1:]]
    return [number / length for number in numbers]


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
