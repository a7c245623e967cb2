"""Thinking that another model signed, which would make a thread unusable for ever (FB-17)."""

from __future__ import annotations

from typing import Any

from flowrt.errors import ModelRefused
from flowrt.llm.model import Block
from flowrt.llm.request import join_turns

_THINKING = ("thinking", "redacted_thinking")
_MOST = 10_000


class ForeignThinking:
    """Remembers the thinking blocks that this model refused, so that it is asked only once."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def learn(self, refused: ModelRefused, messages: list[dict[str, Any]]) -> bool:
        """Note the thinking in a refused request; False where that is not why it was refused."""
        text = str(refused)
        if refused.status != 400 or "`thinking`" not in text:
            return False
        if "signature" not in text and "cannot be modified" not in text:
            return False
        seals = {_seal(b) for m in messages for b in m["content"] if b.get("type") in _THINKING}
        new = seals - self._known
        if len(self._known) > _MOST:
            self._known.clear()
        self._known |= new
        return bool(new)

    def without(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages without refused thinking; the same list where there is none."""
        if not self._known:
            return messages
        kept = [
            {**message, "content": [block for block in message["content"] if self._may_go(block)]}
            for message in messages
        ]
        same = all(
            len(a["content"]) == len(b["content"]) for a, b in zip(kept, messages, strict=True)
        )
        return messages if same else join_turns(kept)

    def _may_go(self, block: Block) -> bool:
        return block.get("type") not in _THINKING or _seal(block) not in self._known


def lacks_thinking(messages: list[dict[str, Any]]) -> bool:
    """Whether the tool round under way has lost its thinking, so that no more may be asked for."""
    if len(messages) < 2 or messages[-1]["content"][0].get("type") != "tool_result":
        return False
    return messages[-2]["content"][0].get("type") not in _THINKING


def _seal(block: Block) -> str:
    return str(block.get("signature") or block.get("data"))
