"""`flowrt memory search`: what a user's turns and facts hold about a question."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from flowrt.cli.exits import DONE
from flowrt.cli.memory.opened import Asked, Remembered, run_on
from flowrt.cli.memory.screen import inline, moment, print_json, print_lines
from flowrt.config.load import load_config
from flowrt.connectors.embeddings import VARIABLE, memory_embeddings
from flowrt.engine.build import build
from flowrt.errors import Fault
from flowrt.memory.search.meaning import Embedder
from flowrt.memory.search.recall import Recall
from flowrt.storage.agents.protocol import Person

Row = dict[str, Any]


def search_command(asked: Asked, query: str, user: str, agent: str | None, limit: int) -> int:
    """Print the hits of each agent, the best first: scores compare within one agent only."""
    rows = run_on(asked, lambda memory: _search(asked, memory, query, user, agent, limit))
    if asked.as_json:
        print_json(rows)
    else:
        print_lines(line for row in rows if row["hits"] for line in _lines(row))
    return DONE


async def _search(
    asked: Asked, memory: Remembered, query: str, user: str, agent: str | None, limit: int
) -> list[Row]:
    rows = []
    async with _embedder(asked) as embedder:
        recall = Recall(memory.record, embedder)
        for name in await memory.agents(agent):
            found = await recall.search(Person(memory.service, name, user), query, limit=limit)
            hits = [asdict(hit) for hit in found.hits]
            rows.append({"agent": name, "by": found.by, "waiting": found.waiting, "hits": hits})
    return rows


@asynccontextmanager
async def _embedder(asked: Asked) -> AsyncIterator[Embedder | None]:
    """What the deployment has memory searched with; None where it goes by words."""
    name = os.environ.get(VARIABLE, "").strip()
    if not name:
        yield None
        return
    faults: list[Fault] = []
    built = build(load_config(asked.config, env_file=asked.env_file, faults=faults), faults)
    model = memory_embeddings(built.connectors, os.environ)
    # This one alone: a search has no business with the others.
    connector = built.connectors[name]
    await connector.start()
    try:
        yield Embedder(model) if model is not None else None
    finally:
        await connector.stop()


def _lines(row: Row) -> Iterator[str]:
    waiting = f", {row['waiting']:,} still without a vector" if row["waiting"] else ""
    yield f"agent {inline(row['agent'])}, by {row['by']}{waiting}"
    for hit in row["hits"]:
        words = f" ({', '.join(hit['words'])})" if hit["words"] else ""
        place = f"thread {inline(hit['thread'])} turn {hit['seq']}" if hit["thread"] else "no turn"
        yield f"  {hit['score']:6.2f}  {place}, {moment(hit['at'])}, found by {hit['why']}{words}"
        yield f"          {inline(hit['name'])}: {inline(hit['text'])}"
