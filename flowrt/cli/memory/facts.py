"""`flowrt memory facts` and `why`: what is known about a user, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from flowrt.cli.exits import DONE, FAILED, say
from flowrt.cli.memory.opened import Asked, Remembered, all_facts, run_on
from flowrt.cli.memory.screen import inline, moment, print_json, print_lines
from flowrt.storage.agents.protocol import Fact, Person, Place, Turn

Row = dict[str, Any]


def facts_command(asked: Asked, user: str, agent: str | None) -> int:
    """Print the facts about a user, of one agent or of all."""
    rows = run_on(asked, lambda memory: _facts(memory, user, agent))
    if asked.as_json:
        print_json(rows)
    else:
        print_lines(
            f"{inline(row['agent'])}\t{inline(row['name'])} = {inline(row['value'])}"
            f"\t{source(row['thread'], row['seq'])}, {moment(row['updated'])}"
            for row in rows
        )
    return DONE


def why_command(asked: Asked, name: str, user: str, agent: str | None) -> int:
    """Print a fact with the turn it came from and the values before; `FAILED` without one."""
    rows = run_on(asked, lambda memory: _why(memory, name, user, agent))
    if asked.as_json:
        print_json(rows)
    else:
        for row in rows:
            print_lines(_reasons(row))
    if not rows:
        say(f"nothing is known as {name!r} about {user!r}; `flowrt memory facts` lists what is")
    return DONE if rows else FAILED


def fact_json(fact: Fact, agent: str) -> Row:
    """A fact as `--json` has it."""
    row = {key: value for key, value in asdict(fact).items() if key not in ("id", "earlier")}
    return {"agent": agent, **row}


def source(thread: str, seq: int) -> str:
    """Where a value came from, in words."""
    if not thread:
        return "from outside a conversation"
    turn = f"turn {seq} of " if seq else ""
    return f"from {turn}thread {inline(thread)}"


async def _facts(memory: Remembered, user: str, agent: str | None) -> list[Row]:
    return [
        fact_json(fact, name)
        for name in await memory.agents(agent)
        async for fact in all_facts(memory.record, Person(memory.service, name, user))
    ]


async def _why(memory: Remembered, name: str, user: str, agent: str | None) -> list[Row]:
    rows = []
    for each in await memory.agents(agent):
        fact = await memory.record.fact(Person(memory.service, each, user), name)
        if fact is None:
            continue
        turn = await _turn(memory, Place(memory.service, each, fact.thread, user), fact.seq)
        said = None if turn is None else {"role": turn.role, "text": turn.text, "at": turn.at}
        earlier = [asdict(was) for was in reversed(fact.earlier)]
        rows.append({**fact_json(fact, each), "turn": said, "earlier": earlier})
    return rows


async def _turn(memory: Remembered, place: Place, seq: int) -> Turn | None:
    """The turn a value came from, in whichever tier its thread is; None where it is gone."""
    if not place.thread or not seq:
        return None
    for tier in memory.tiers:
        if tier.record is not None:
            page = await tier.record.turns(place, after=seq - 1, limit=1)
            if page.items and page.items[0].seq == seq:
                return page.items[0]
    return None


def _reasons(row: Row) -> Iterator[str]:
    yield f"{inline(row['name'])} = {inline(row['value'])}"
    yield f"  agent {inline(row['agent'])}, version {row['version']}, {moment(row['updated'])}"
    yield f"  {source(row['thread'], row['seq'])}"
    if row["turn"] is not None:
        yield f"  {row['turn']['role']}: {inline(row['turn']['text'])}"
    elif row["seq"]:
        yield "  that turn is not in the record (any more)"
    for was in row["earlier"]:
        yield (
            f"  before: {inline(was['value'])}"
            f" (version {was['version']}, {source(was['thread'], was['seq'])}, {moment(was['at'])})"
        )
