"""Thinking that another model signed, which would make a thread unusable for ever (FB-17)."""

from __future__ import annotations

from typing import Any

from flowrt.errors import ModelRefused
from flowrt.llm.model import Block
from flowrt.llm.openai_reasoning import is_echo
from flowrt.llm.request import join_turns

_THINKING = ("thinking", "redacted_thinking")
_MOST = 10_000


class ForeignThinking:
    """Remembers the thinking blocks that this model refused, so that it is asked only once.

    Those that came over Chat Completions it would refuse as well, and needs not be asked about.
    """

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
        if all(self._may_go(block) for message in messages for block in message["content"]):
            return messages
        return join_turns(
            [
                {**message, "content": [b for b in message["content"] if self._may_go(b)]}
                for message in messages
            ]
        )

    def _may_go(self, block: Block) -> bool:
        if block.get("type") not in _THINKING:
            return True
        return not is_echo(block) and _seal(block) not in self._known


def lacks_thinking(messages: list[dict[str, Any]]) -> bool:
    """Whether the tool round under way has lost its thinking, so that no more may be asked for."""
    if len(messages) < 2 or messages[-1]["content"][0].get("type") != "tool_result":
        return False
    return messages[-2]["content"][0].get("type") not in _THINKING


def _seal(block: Block) -> str:
    return str(block.get("signature") or block.get("data"))
