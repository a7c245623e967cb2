"""A short conversation of one block with a model: made for one message and forgotten after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flowrt.agent.media import NO_FILES, Files, Opening
from flowrt.agent.turn import call_model
from flowrt.engine.run import Run
from flowrt.llm.model import ChatModel, Reply
from flowrt.llm.request import build_request
from flowrt.memory.entry import assistant_entry, results_entry, user_entry
from flowrt.message import Message, clean_text


@dataclass(frozen=True, slots=True)
class Asking:
    """How a block asks its model: the same for every message.

    `block` is the block's address and `purpose` what its calls are for, both for traces.
    `max_tokens` None leaves the length of a reply to the connector. `cache` says that a second
    round is likely, so that the provider should keep what it read in the first.
    """

    model: ChatModel
    block: str
    purpose: str
    system: str
    tools: list[dict[str, Any]] = field(default_factory=list)
    tool_choice: dict[str, Any] | None = None
    max_tokens: int | None = None
    cache: bool = True


class Dialogue:
    """The turns of one conversation. After a reply with calls, `answer` every one of them."""

    def __init__(self, asking: Asking, message: Message, run: Run) -> None:
        self._asking = asking
        self._message = message
        self._run = run
        self._turns: list[dict[str, Any]] = []
        self._round = 0

    async def ask(self, text: str, files: Files = NO_FILES) -> Reply:
        """Say something and get the reply. Raises what `ChatModel.complete` raises."""
        self._turns.append(Opening(user_entry(clean_text(text)), files).entry.message)
        return await self._next()

    async def answer(self, results: list[dict[str, Any]]) -> Reply:
        """Give the results of the calls of the last reply and get the next."""
        self._turns.append(results_entry(results).message)
        return await self._next()

    async def _next(self) -> Reply:
        asking = self._asking
        self._round += 1
        request = build_request(
            system=[asking.system],
            tools=asking.tools,
            tool_choice=asking.tool_choice,
            messages=self._turns,
            max_tokens=asking.max_tokens,
            cache=asking.cache,
            purpose=asking.purpose,
        )
        reply = await call_model(
            asking.model,
            request,
            self._run,
            self._message,
            block=asking.block,
            iteration=self._round,
        )
        self._turns.append(assistant_entry(reply.content).message)
        return reply
