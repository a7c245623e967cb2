"""`flowrt memory clear`: one conversation is forgotten."""

from __future__ import annotations

from typing import Any

from flowrt.cli.exits import DONE
from flowrt.cli.memory.opened import Asked, Found, Remembered, find_thread, find_threads, run_on
from flowrt.cli.memory.screen import print_json
from flowrt.memory.agent_memory import drop_context
from flowrt.storage.agents.protocol import Place, Removed


def clear_command(asked: Asked, thread: str, agent: str | None) -> int:
    """Remove a thread in both tiers and say whether there was one."""
    print_json(run_on(asked, lambda memory: _clear(memory, thread, agent)))
    return DONE


async def _clear(memory: Remembered, thread: str, agent: str | None) -> dict[str, Any]:
    meant = await find_thread(memory, thread, agent)
    if meant is None:
        return {"thread": thread, "cleared": False}
    removed, cleared = Removed(), False
    for found in await find_threads(memory, thread, meant.agent):
        if found.agent != meant.agent:
            continue
        # The context first: what a crash between the two leaves is found by its thread.
        cleared |= await _drop(found)
        if found.agent is not None and found.tier.record is not None:
            removed += await found.tier.record.delete_thread(
                Place(memory.service, found.agent, thread)
            )
    report = {"thread": thread, "cleared": cleared or removed.threads > 0}
    return report if meant.agent is None else {**report, "agent": meant.agent}


async def _drop(found: Found) -> bool:
    space = found.tier.space
    if found.agent is None:
        return await space.delete(found.key)
    return await drop_context(space, found.agent, found.thread)
