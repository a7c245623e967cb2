"""`flowrt memory forget`: a person is forgotten."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from flowrt.cli.exits import DONE
from flowrt.cli.memory.opened import Asked, Remembered, run_on
from flowrt.cli.memory.screen import counted, inline, print_json, print_lines
from flowrt.errors import CallError
from flowrt.memory.forgetting import Forgotten, forget_user


def forget_command(asked: Asked, user: str, agent: str | None, dry_run: bool) -> int:
    """Remove everything of a user and print a receipt: counts, never content."""
    if not user:
        raise CallError("--user is empty: there is nobody to forget")
    receipt = run_on(asked, lambda memory: _forget(memory, user, agent, dry_run))
    if asked.as_json:
        print_json({"user": user, "agent": agent, "dryRun": dry_run, **receipt})
        return DONE
    said = "would be removed" if dry_run else "removed"
    of = f"user {inline(user)}" + (f" with agent {inline(agent)}" if agent is not None else "")
    counts = ", ".join(counted(count, name[:-1]) for name, count in receipt.items())
    print_lines([f"{of}: {counts} {said}"])
    return DONE


async def _forget(
    memory: Remembered, user: str, agent: str | None, dry_run: bool
) -> dict[str, Any]:
    gone = Forgotten()
    # A persistent store without a record is refused: nothing would be found in it.
    _ = memory.record
    for tier in memory.tiers:
        if tier.record is not None:
            gone += await forget_user(
                tier.record, tier.space, memory.service, user, agent=agent, dry_run=dry_run
            )
    return {**asdict(gone.removed), "contexts": gone.contexts}
