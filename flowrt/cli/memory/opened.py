"""What the commands of `flowrt memory` read: the memory of one service, opened for one command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from flowrt.cli.exits import say
from flowrt.config.load import load_config
from flowrt.errors import CallError
from flowrt.memory.agent_memory import archive_key, working_key
from flowrt.memory.transcript import PREFIX
from flowrt.observe.masking import add_secrets
from flowrt.storage.agents.protocol import (
    AgentStore,
    Fact,
    Page,
    Person,
    Place,
    ThreadInfo,
    Turn,
)
from flowrt.storage.tiers import Space, Storage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """What every command is given: the service, its storage, and how to print."""

    config: str
    storage: str | None
    env_file: str | None
    as_json: bool


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier's memory. `record` is None where its store keeps no record of agents."""

    name: str
    space: Space
    record: AgentStore | None


@dataclass(frozen=True, slots=True)
class Remembered:
    """The memory of a service, in its tiers."""

    service: str
    storage: Storage
    tiers: tuple[Tier, ...]

    @property
    def record(self) -> AgentStore:
        """The record in the persistent tier, where facts always are. Raises `CallError`."""
        return self.storage.agents()

    async def agents(self, only: str | None = None) -> list[str]:
        """The agents of the persistent record; only the one that is asked for."""
        return [only] if only is not None else await self.record.agents(self.service)


def run_on(asked: Asked, work: Callable[[Remembered], Awaitable[T]]) -> T:
    """Open the memory of the service, do `work` on it, and close it."""
    config = load_config(asked.config, env_file=asked.env_file)
    add_secrets(config.env.secrets.values())
    service = config.name
    storage = Storage.from_urls(service, asked.storage)
    if os.environ.get("FLOWRT_MEMORY"):
        say("FLOWRT_MEMORY is set: this is about what the service's own storage holds")

    async def run() -> T:
        try:
            tiers = (
                _tier(storage, "persistent", volatile=False),
                _tier(storage, "volatile", volatile=True),
            )
            return await work(Remembered(service, storage, tiers))
        finally:
            await storage.close()

    return asyncio.run(run())


def _tier(storage: Storage, name: str, *, volatile: bool) -> Tier:
    space = storage.space("user_volatile" if volatile else "user")
    try:
        return Tier(name, space, storage.agents(volatile=volatile))
    except CallError:
        # A store of somebody else's; conversations without an agent are in it all the same.
        return Tier(name, space, None)


@dataclass(frozen=True, slots=True)
class Found:
    """A conversation. `agent` is None for one of a block without `agentId`."""

    tier: Tier
    agent: str | None
    thread: str

    @property
    def key(self) -> str:
        """Where its working context is."""
        if self.agent is None:
            return PREFIX + self.thread
        return working_key(self.agent, self.thread)


async def find_threads(memory: Remembered, thread: str, agent: str | None) -> list[Found]:
    """Every conversation of that id, with `agent` only that agent's."""
    found = []
    for tier in memory.tiers:
        if agent is None and await tier.space.read_log(PREFIX + thread, entries=False):
            found.append(Found(tier, None, thread))
        for name in await _agents_of(memory.service, tier, agent):
            if await _has(memory.service, tier, name, thread):
                found.append(Found(tier, name, thread))
    return found


async def _has(service: str, tier: Tier, agent: str, thread: str) -> bool:
    if tier.record and await tier.record.thread(Place(service, agent, thread)):
        return True
    keys = working_key(agent, thread), archive_key(agent, thread)
    return any([await tier.space.read_log(key, entries=False) is not None for key in keys])


async def find_thread(memory: Remembered, thread: str, agent: str | None) -> Found | None:
    """The conversation that is meant. Raises `CallError` where several agents have one."""
    found = await find_threads(memory, thread, agent)
    agents = {each.agent for each in found}
    if len(agents) > 1:
        named = sorted(repr(name) for name in agents if name is not None)
        bare = " and a block without agentId" if None in agents else ""
        raise CallError(
            f"the thread {thread!r} is one of the agents {', '.join(named)}{bare}; "
            "say which with --agent"
        )
    return found[0] if found else None


async def _agents_of(service: str, tier: Tier, only: str | None) -> list[str]:
    if only is not None:
        return [only]
    return await tier.record.agents(service) if tier.record else []


async def all_threads(
    record: AgentStore, service: str, agent: str, user: str | None = None
) -> AsyncIterator[ThreadInfo]:
    """Every thread of an agent, or of one user with it; the last active first."""
    async for info in _pages(lambda after: record.threads(service, agent, user=user, after=after)):
        yield info


async def all_turns(record: AgentStore, place: Place) -> AsyncIterator[Turn]:
    """Every turn of a thread, oldest first."""
    async for turn in _pages(lambda after: record.turns(place, after=int(after or 0))):
        yield turn


async def all_facts(record: AgentStore, person: Person) -> AsyncIterator[Fact]:
    """Everything known about a person, the last changed first."""
    async for fact in _pages(lambda after: record.facts(person, after=after)):
        yield fact


async def all_keys(space: Space, prefix: str) -> AsyncIterator[Any]:
    """Every key of a space that starts with `prefix`."""
    after: str | None = None
    while True:
        page = await space.scan(prefix, after=after)
        for key in page.keys:
            yield key
        if page.after is None:
            return
        after = page.after


async def _pages(read: Callable[[str | None], Awaitable[Page[T]]]) -> AsyncIterator[T]:
    after: str | None = None
    while True:
        page = await read(after)
        for item in page.items:
            yield item
        if page.after is None:
            return
        after = page.after
