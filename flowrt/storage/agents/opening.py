"""The record of agents in a tier, which opens its store on first use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from flowrt.errors import CallError
from flowrt.storage.agents.protocol import (
    AgentStore,
    Dated,
    Fact,
    IndexPart,
    NewTurn,
    Page,
    Person,
    Place,
    Removed,
    ThreadInfo,
    Turn,
    Vector,
)


class OpeningAgents:
    """An `AgentStore` that awaits `opened` before each call, and is that store otherwise."""

    __slots__ = ("_agents", "_opened")

    def __init__(self, opened: Callable[[], Awaitable[object]], agents: AgentStore) -> None:
        self._opened = opened
        self._agents = agents

    def dated(self, now: Callable[[], float]) -> OpeningAgents:
        """See `flowrt.storage.agents.protocol.Dated`. Raises `CallError` where the store cannot."""
        if not isinstance(self._agents, Dated):
            raise CallError(
                "this store cannot keep the times of what is imported; "
                "import into sqlite:PATH or redis://HOST:PORT/DB"
            )
        return OpeningAgents(self._opened, self._agents.dated(now))

    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        await self._opened()
        return await self._agents.append_turns(place, turns)

    async def touch(self, place: Place) -> ThreadInfo:
        await self._opened()
        return await self._agents.touch(place)

    async def turns(
        self, place: Place, *, after: int = 0, limit: int = 500, newest_first: bool = False
    ) -> Page[Turn]:
        await self._opened()
        return await self._agents.turns(place, after=after, limit=limit, newest_first=newest_first)

    async def turns_of(self, person: Person, *, after: int = 0, limit: int = 5000) -> Page[Turn]:
        await self._opened()
        return await self._agents.turns_of(person, after=after, limit=limit)

    async def thread(self, place: Place) -> ThreadInfo | None:
        await self._opened()
        return await self._agents.thread(place)

    async def threads(
        self,
        service: str,
        agent: str,
        *,
        user: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[ThreadInfo]:
        await self._opened()
        return await self._agents.threads(service, agent, user=user, after=after, limit=limit)

    async def agents(self, service: str) -> list[str]:
        await self._opened()
        return await self._agents.agents(service)

    async def users(self, service: str, agent: str) -> list[str]:
        await self._opened()
        return await self._agents.users(service, agent)

    async def set_title(self, place: Place, title: str) -> None:
        await self._opened()
        await self._agents.set_title(place, title)

    async def delete_thread(self, place: Place) -> Removed:
        await self._opened()
        return await self._agents.delete_thread(place)

    async def facts(
        self, person: Person, *, after: str | None = None, limit: int = 100
    ) -> Page[Fact]:
        await self._opened()
        return await self._agents.facts(person, after=after, limit=limit)

    async def fact(self, person: Person, name: str) -> Fact | None:
        await self._opened()
        return await self._agents.fact(person, name)

    async def put_fact(
        self,
        person: Person,
        name: str,
        value: str,
        *,
        expect: int | None,
        thread: str = "",
        seq: int = 0,
    ) -> Fact:
        await self._opened()
        return await self._agents.put_fact(
            person, name, value, expect=expect, thread=thread, seq=seq
        )

    async def delete_fact(self, person: Person, name: str) -> bool:
        await self._opened()
        return await self._agents.delete_fact(person, name)

    async def put_vectors(self, person: Person, vectors: Sequence[Vector]) -> None:
        await self._opened()
        await self._agents.put_vectors(person, vectors)

    async def vectors_of(
        self, person: Person, *, after: str | None = None, limit: int = 5000
    ) -> Page[Vector]:
        await self._opened()
        return await self._agents.vectors_of(person, after=after, limit=limit)

    async def forget_user(
        self, service: str, user: str, *, agent: str | None = None, dry_run: bool = False
    ) -> Removed:
        await self._opened()
        return await self._agents.forget_user(service, user, agent=agent, dry_run=dry_run)

    async def version(self, person: Person) -> int:
        await self._opened()
        return await self._agents.version(person)

    async def epoch(self, person: Person) -> int:
        await self._opened()
        return await self._agents.epoch(person)

    async def put_part(self, person: Person, part: IndexPart, *, epoch: int) -> bool:
        await self._opened()
        return await self._agents.put_part(person, part, epoch=epoch)

    async def parts(self, person: Person, *, after: int = 0, limit: int = 16) -> Page[IndexPart]:
        await self._opened()
        return await self._agents.parts(person, after=after, limit=limit)
