"""Forgetting a person: everything an agent has of them, in one tier."""

from __future__ import annotations

from dataclasses import dataclass, field

from flowrt.memory.agent_memory import drop_context, working_key
from flowrt.storage.agents.protocol import AgentStore, Removed
from flowrt.storage.tiers import Space


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A receipt: how much was removed, or would be. Never what it was."""

    removed: Removed = field(default_factory=Removed)
    contexts: int = 0

    def __add__(self, other: Forgotten) -> Forgotten:
        return Forgotten(self.removed + other.removed, self.contexts + other.contexts)


async def forget_user(
    record: AgentStore,
    space: Space,
    service: str,
    user: str,
    *,
    agent: str | None = None,
    dry_run: bool = False,
) -> Forgotten:
    """Remove working contexts with their archives, threads, turns, facts and vectors of a user, of
    one agent or all.

    The contexts go first: they are found by their threads, so a crash in between leaves nothing
    that a second call does not find. And the record goes last, because with it a store scrubs its
    files. Raises `ValueError` for a `user` "", `StoreError` where the store fails.
    """
    if not user:
        raise ValueError("there is nobody to forget: the user is empty")
    contexts = 0
    for name in await record.agents(service) if agent is None else [agent]:
        for thread in await _threads(record, service, name, user):
            if dry_run:
                log = await space.read_log(working_key(name, thread), entries=False)
                contexts += log is not None
            else:
                contexts += await drop_context(space, name, thread)
    removed = await record.forget_user(service, user, agent=agent, dry_run=dry_run)
    return Forgotten(removed, contexts)


async def _threads(record: AgentStore, service: str, agent: str, user: str) -> list[str]:
    found: list[str] = []
    after: str | None = None
    while True:
        page = await record.threads(service, agent, user=user, after=after)
        found += [info.thread for info in page.items]
        if page.after is None:
            return found
        after = page.after
