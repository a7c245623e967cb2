"""Input tokens billed a turn over a long thread, with cache prices, for shares of `compactTo`.

Written to the cache a token costs 1.25 times an uncached one, read from it 0.1 times. A prompt is
cached up to its breakpoints, as the provider does; a compaction changes the prefix, so all of it is
written again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from bench.measure import ANSWER, document, message, report, service
from flowrt.engine import registry
from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.llm.connector import ModelConnector
from flowrt.llm.estimate import estimate_fixed, estimate_message
from flowrt.llm.model import ChatModel, Delta, Reply, Request, Usage
from flowrt.llm.scripted import ScriptedModel, ScriptedReply

TURNS = 500
SHARES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
WRITE, READ = 1.25, 0.1


class Bill:
    """Counts what requests cost, keeping what the provider's cache would hold."""

    def __init__(self) -> None:
        self._cached: set[str] = set()
        self.cost = 0.0
        self.compactions = 0
        self._longest = 0

    def add(self, request: Request) -> Usage:
        """Bill one request."""
        prefix = json.dumps([request.tools, _bare(request.system)])
        tokens = estimate_fixed(request.system, request.tools)
        marks = [(prefix, tokens)]
        for each in request.messages:
            prefix += json.dumps(_bare(each["content"]))
            tokens += estimate_message(each)
            if any("cache_control" in block for block in each["content"]):
                marks.append((prefix, tokens))
        read = max((size for key, size in marks if key in self._cached), default=0)
        written = marks[-1][1] - read
        self._cached = {key for key, _ in marks} | self._cached
        self.cost += READ * read + WRITE * written + (tokens - marks[-1][1])
        self.compactions += len(request.messages) < self._longest
        self._longest = len(request.messages)
        return Usage(input_tokens=tokens, output_tokens=len(ANSWER) // 4)


def _bare(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]


class Billed(Connector[Settings], ModelConnector):
    """The scripted turn of `bench.measure`, with every request on the bill."""

    Settings = Settings
    bill: Bill

    @property
    def chat_model(self) -> ChatModel:
        return BilledModel(Billed.bill)


class BilledModel(ScriptedModel):
    """Answers like the script and reports what the bill says."""

    def __init__(self, bill: Bill) -> None:
        replies = document()["connectors"][0]["settings"]["replies"]
        super().__init__([ScriptedReply.model_validate(each) for each in replies], repeat=True)
        self._bill = bill

    async def complete(
        self, request: Request, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply:
        """The next reply, billed."""
        reply = await super().complete(request, on_delta)
        reply.usage = self._bill.add(request)
        return reply


async def main() -> None:
    """One thread for each share."""
    registry.connectors.add("llm-billed", Billed)
    best: dict[float, float] = {}
    for share in SHARES:
        Billed.bill = bill = Bill()
        content = document(compactTo=share)
        content["connectors"] = [{"name": "model", "type": "llm-billed"}]
        with service(content, "memory:") as made:
            async with made:
                for _ in range(TURNS):
                    await made.invoke("chat", message())
        best[share] = round(bill.cost / TURNS, 1)
        report("cost", compact_to=share, tokens_a_turn=best[share], compactions=bill.compactions)
    report("cost", cheapest=min(best, key=lambda share: best[share]))


if __name__ == "__main__":
    asyncio.run(main())
