"""`flowrt memory threads`: the conversations that are stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from flowrt.cli.exits import DONE
from flowrt.cli.memory.opened import Asked, Remembered, Tier, all_keys, all_threads, run_on
from flowrt.cli.memory.screen import counted, inline, moment, print_json, print_lines
from flowrt.memory.transcript import PREFIX
from flowrt.storage.agents.protocol import ThreadInfo

Row = dict[str, Any]


def threads_command(asked: Asked, agent: str | None, user: str | None) -> int:
    """List threads, of one agent or user or of all, the last active of an agent first."""
    rows = run_on(asked, lambda memory: _rows(memory, agent, user))
    if asked.as_json:
        print_json(rows)
    else:
        print_lines(_lines(rows))
    return DONE


async def _rows(memory: Remembered, agent: str | None, user: str | None) -> list[Row]:
    rows: list[Row] = []
    for tier in memory.tiers:
        if tier.record is not None:
            names = await tier.record.agents(memory.service)
            for name in names if agent is None else [agent]:
                rows += [
                    _of_agent(info, tier)
                    async for info in all_threads(tier.record, memory.service, name, user)
                ]
        if agent is None and user is None:
            rows += [row async for row in _without_agent(tier)]
    return rows


def _of_agent(info: ThreadInfo, tier: Tier) -> Row:
    return {
        "thread": info.thread,
        "tier": tier.name,
        "version": info.version,
        "agent": info.agent,
        "user": info.user,
        "title": info.title,
        "turns": info.turns,
        "created": info.created,
        "active": info.active,
    }


async def _without_agent(tier: Tier) -> AsyncIterator[Row]:
    async for key in all_keys(tier.space, PREFIX):
        yield {
            "thread": key.name.removeprefix(PREFIX),
            "tier": tier.name,
            "version": key.version,
            "agent": None,
        }


def _lines(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        columns = [inline(row["thread"]), row["tier"]]
        if row["agent"] is None:
            columns.append(counted(row["version"], "write"))
        else:
            columns += [
                f"agent {inline(row['agent'])}",
                f"user {inline(row['user'])}" if row["user"] else "nobody's",
                counted(row["turns"], "turn"),
                moment(row["active"]),
                inline(row["title"]),
            ]
        yield "\t".join(columns)
