"""Random conversations, and a provider in the process that is as strict as the real one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from flowrt.agent.loop import MAX_CUT_OFF
from flowrt.engine import registry
from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.errors import ModelUnavailable
from flowrt.llm.connector import ModelConnector
from flowrt.llm.model import ChatModel, Delta, Reply, Request, Usage
from flowrt.memory.transcript import Thread
from flowrt.service import Result
from flowrt.testing.messages_refusals import refusals
from tests.services import agent, load, texts


@dataclass
class Round:
    """An assistant turn that calls tools: one call for each result size; a negative one fails."""

    results: list[int]
    thinking: bool
    cut_off: bool


@dataclass
class Turn:
    """A user's message: its length, the tool rounds it leads to, and how the run ends."""

    length: int
    rounds: list[Round]
    ending: str


@dataclass
class History:
    """A conversation on one thread, with the settings it happens under."""

    turns: list[Turn]
    budget: int
    strategy: str
    compact_to: float
    tokens_per_estimate: float | None


rounds = st.builds(
    Round,
    results=st.lists(st.integers(-50, 1500), min_size=1, max_size=4),
    thinking=st.booleans(),
    cut_off=st.sampled_from([False, False, False, True]),
)
turns = st.builds(
    Turn,
    length=st.integers(1, 1200),
    rounds=st.lists(rounds, max_size=4),
    ending=st.sampled_from(["answer", "answer", "answer", "fail", "cancel", "refuse", "blank"]),
)
histories = st.builds(
    History,
    turns=st.lists(turns, min_size=1, max_size=6),
    budget=st.one_of(st.integers(1, 400), st.integers(400, 4000), st.just(200_000)),
    strategy=st.sampled_from(["prune", "summarize"]),
    compact_to=st.sampled_from([0.3, 0.6, 1.0]),
    tokens_per_estimate=st.sampled_from([None, 0.4, 1.0, 3.0]),
)


class StrictProvider:
    """A `ChatModel` that plays a turn and refuses what the Messages API refuses."""

    name = provider = "strict"

    def __init__(self, tokens_per_estimate: float | None) -> None:
        self._scale = tokens_per_estimate
        self._script: list[Callable[[], Any]] = []
        self._made = 0
        self.question = ""
        self.faults: list[str] = []
        self.reached = asyncio.Event()

    def play(self, question: str, turn: Turn) -> None:
        """Answer what follows as this turn says."""
        self.question = question
        self.reached = asyncio.Event()
        self._script = [lambda each=each: self._round(each) for each in turn.rounds]  # type: ignore[misc]
        self._script.append(lambda: self._end(turn.ending))

    async def complete(
        self, request: Request, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply:
        body = {
            "model": "m",
            "max_tokens": 1000,
            "messages": request.messages,
            "system": request.system,
            "tools": request.tools,
        }
        # Kept, not raised: a flow turns whatever a model raises into a failure of its own.
        self.faults += refusals(json.loads(json.dumps(body)), alternate=True, prefill=False)
        if request.purpose == "memory-compaction":
            return Reply([{"type": "text", "text": "They talked."}], "end_turn", "m", None)
        said = [text for message in request.messages for text in texts(message)]
        if self.question not in said:
            self.faults.append("the question is not in the request")
        made = self._script.pop(0)()
        content, stop = await made if asyncio.iscoroutine(made) else made
        return Reply(content, stop, "m", self._usage(body))

    def _usage(self, body: dict[str, Any]) -> Usage | None:
        if self._scale is None:
            return None
        return Usage(input_tokens=int(len(json.dumps(body)) / 4 * self._scale), output_tokens=10)

    def _round(self, each: Round) -> tuple[list[dict[str, Any]], str]:
        content: list[dict[str, Any]] = []
        if each.thinking:
            content.append({"type": "thinking", "thinking": "hm", "signature": "s"})
            content.append({"type": "text", "text": ""})
        for size in each.results:
            self._made += 1
            arguments = {"size": size}
            call = {"type": "tool_use", "id": f"c{self._made}", "name": "make", "input": arguments}
            content.append(call)
        return content, "max_tokens" if each.cut_off else "tool_use"

    def _end(self, ending: str) -> Any:
        match ending:
            case "fail":
                raise ModelUnavailable("scripted")
            case "cancel":
                return self._wait()
            case "refuse":
                return [{"type": "text", "text": "No."}], "refusal"
            case "blank":
                return [], "end_turn"
        return [{"type": "text", "text": "Fine.\n"}], "end_turn"

    async def _wait(self) -> Any:
        self.reached.set()
        await asyncio.Event().wait()


class StrictConnector(Connector[Settings], ModelConnector):
    """Gives the provider of the conversation that is being played."""

    Settings = Settings
    current: StrictProvider

    @property
    def chat_model(self) -> ChatModel:
        return StrictConnector.current


MOST_CALLS = 5
MAKE = {
    "name": "make",
    "description": "Makes a list of a size; a negative one fails, none gives nothing.",
    "process": [
        {
            "type": "set-payload",
            "value": 'body.size < 0 ? body.missing : lists.range(body.size / 8).map(n, "abcd")',
        }
    ],
}


def _check(turn: Turn, result: Result) -> None:
    """Only what was scripted to fail may fail, and only like that."""
    if turn.ending in ("answer", "blank") and len(turn.rounds) < MOST_CALLS:
        cut_off = sum(each.cut_off for each in turn.rounds)
        assert result.error is None or cut_off > MAX_CUT_OFF, result.error


async def play(history: History, folder: Path, storage: str, thread: str) -> None:
    """Have the conversation, each turn in a service of its own, and check what is stored."""
    registry.connectors.add("llm-strict", StrictConnector)
    provider = StrictProvider(history.tokens_per_estimate)
    StrictConnector.current = provider
    document = agent(
        "",
        tools=[MAKE],
        contextMaxTokens=history.budget,
        memoryCompaction=history.strategy,
        compactTo=history.compact_to,
        maxIterations=MOST_CALLS,
    )
    document["connectors"] = [{"name": "claude", "type": "llm-strict"}]
    async with load(folder, document, storage) as service:
        for number, turn in enumerate(history.turns):
            question = f"question {number} " + "w " * turn.length
            provider.play(question, turn)
            run = asyncio.ensure_future(
                service.invoke("chat", {"thread": thread, "message": question})
            )
            reached = asyncio.ensure_future(provider.reached.wait())
            await asyncio.wait({run, reached}, return_when=asyncio.FIRST_COMPLETED)
            if not run.done():
                run.cancel()
            reached.cancel()
            await asyncio.wait({run})
            assert [] == provider.faults
            if not run.cancelled():
                _check(turn, run.result())
        await Thread(service.storage.space("user"), thread).load()
