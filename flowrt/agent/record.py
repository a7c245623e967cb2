"""What one exchange puts on the record: what was asked, verbatim, and what was answered."""

from __future__ import annotations

from typing import Any

from flowrt.agent.conversation import Conversation
from flowrt.agent.keeper import Ending
from flowrt.agent.showing import Showing
from flowrt.storage.agents.protocol import NewTurn


class Record:
    """The turns of one exchange, recorded together when it has ended.

    An exchange without an answer records what was asked alone, marked `unanswered`.
    """

    def __init__(self, conversation: Conversation, showing: Showing) -> None:
        self._conversation = conversation
        self._showing = showing
        self._said: list[str] = []
        self._seq: int | None = None

    def said(self, text: str) -> None:
        """The user said something."""
        self._said.append(text)

    async def seq(self) -> int:
        """The number that the opening will have. Raises `StoreError`.

        Nobody else records on this thread while the run holds it, so it is the next one; what is
        kept during the run, such as the source of a fact, can name it before it is recorded.
        """
        if self._seq is None:
            self._seq = await self.recorded() + 1
        return self._seq

    async def recorded(self) -> int:
        """How many turns the thread has. Raises `StoreError`."""
        info = await self._conversation.memory.thread(
            self._conversation.thread, context=self._conversation.context
        )
        return info.turns if info is not None else 0

    async def answer(self, seq: int) -> str:
        """What is recorded as the answer to the exchange that begins with this number; "" if none.

        Raises `StoreError`.
        """
        page = await self._conversation.memory.turns(
            self._conversation.place, after=seq - 1, context=self._conversation.context
        )
        return next((turn.text for turn in page.items if turn.role == "assistant"), "")

    async def write(self, ending: Ending) -> int:
        """Record the exchange; the number its opening got. Raises `StoreError`."""
        turns = _turns(self._said, ending)
        if not turns:
            return 0
        turns[0].attrs.update(self._showing.to_attrs(len(turns)))
        recorded = await self._conversation.memory.append_turns(
            self._conversation.place, turns, context=self._conversation.context
        )
        return recorded[0].seq


def _turns(said: list[str], ending: Ending) -> list[NewTurn]:
    attrs: dict[str, Any] = {"iterations": ending.iterations} if ending.iterations else {}
    unanswered: dict[str, Any] = {**attrs, "unanswered": True}
    if ending.stop_reason:
        unanswered["stopReason"] = ending.stop_reason
    answered = bool(ending.answer.strip())
    turns = [_turn("user", text, attrs if answered else unanswered) for text in said]
    turns += [_turn("user", text, unanswered) for text in ending.leftover]
    if answered:
        turns.append(_turn("assistant", ending.answer, attrs))
    return turns


def _turn(role: Any, text: str, attrs: dict[str, Any]) -> NewTurn:
    return NewTurn(role, text, len(text) // 4, dict(attrs))
