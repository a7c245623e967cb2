"""`flowrt memory search`: what a user's turns and facts hold about a question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from flowrt.cli.exits import DONE
from flowrt.cli.memory.opened import Asked, Remembered, run_on
from flowrt.cli.memory.screen import inline, moment, print_json, print_lines
from flowrt.memory.search.recall import Recall
from flowrt.storage.agents.protocol import Person

Row = dict[str, Any]


def search_command(asked: Asked, query: str, user: str, agent: str | None, limit: int) -> int:
    """Print the hits of each agent, the best first: scores compare within one agent only."""
    rows = run_on(asked, lambda memory: _search(memory, query, user, agent, limit))
    if asked.as_json:
        print_json(rows)
    else:
        print_lines(line for row in rows if row["hits"] for line in _lines(row))
    return DONE


async def _search(
    memory: Remembered, query: str, user: str, agent: str | None, limit: int
) -> list[Row]:
    recall = Recall(memory.record)
    rows = []
    for name in await memory.agents(agent):
        found = await recall.search(Person(memory.service, name, user), query, limit=limit)
        hits = [asdict(hit) for hit in found.hits]
        rows.append({"agent": name, "by": found.by, "waiting": found.waiting, "hits": hits})
    return rows


def _lines(row: Row) -> Iterator[str]:
    waiting = f", {row['waiting']:,} still without a vector" if row["waiting"] else ""
    yield f"agent {inline(row['agent'])}, by {row['by']}{waiting}"
    for hit in row["hits"]:
        words = f" ({', '.join(hit['words'])})" if hit["words"] else ""
        place = f"thread {inline(hit['thread'])} turn {hit['seq']}" if hit["thread"] else "no turn"
        yield f"  {hit['score']:6.2f}  {place}, {moment(hit['at'])}, found by {hit['why']}{words}"
        yield f"          {inline(hit['name'])}: {inline(hit['text'])}"
