"""Agents with an `agentId`, and what they have kept."""

from __future__ import annotations

from typing import Any

from flowrt.memory.memories import Memories
from flowrt.service import Service
from flowrt.storage.agents.protocol import Fact, NewTurn, Person, Place, ThreadInfo, Turn
from flowrt.storage.tiers import Storage
from tests.services import agent

AGENT = "helper"


def remembering(base_url: str, **settings: Any) -> dict[str, Any]:
    """The chat of `tests.services` with an `agentId`; the user is `body.user`."""
    document = agent(base_url, **{"agentId": AGENT, "userId": "body.user", **settings})
    document["flows"][1]["process"][0]["agentId"] = AGENT
    return document


def say(text: str, thread: str = "t", user: Any = "ann") -> dict[str, Any]:
    """The body of one message."""
    return {"thread": thread, "message": text, "user": user}


class Kept:
    """What is kept by the memory of a service named `test`."""

    def __init__(self, storage: Storage, memories: Memories) -> None:
        self._storage = storage
        self._memories = memories

    @classmethod
    def of(cls, service: Service) -> Kept:
        return cls(service.storage, service.memories)

    @classmethod
    def at(cls, url: str) -> Kept:
        storage = Storage.from_urls("test", url, environ={})
        return cls(storage, Memories(storage))

    async def close(self) -> None:
        await self._storage.close()

    async def turns(self, thread: str = "t", *, volatile: bool = False) -> list[Turn]:
        memory = self._memories.of(volatile)
        return (await memory.turns(Place("test", AGENT, thread), context={})).items

    async def record(
        self, text: str, thread: str = "t", *, attrs: dict[str, Any] | None = None
    ) -> None:
        """Record a turn of a user that no run asked."""
        turn = NewTurn("user", text, attrs=attrs or {})
        await self._memories.of().append_turns(Place("test", AGENT, thread), [turn], context={})

    async def archived(self, thread: str = "t", *, volatile: bool = False) -> list[bytes]:
        memory = self._memories.of(volatile)
        return await memory.archived(Place("test", AGENT, thread), context={})

    async def said(self, thread: str = "t") -> list[tuple[str, str]]:
        return [(turn.role, turn.text) for turn in await self.turns(thread)]

    async def thread(self, thread: str = "t") -> ThreadInfo | None:
        return await self._memories.of().thread(Place("test", AGENT, thread), context={})

    async def working(self, thread: str = "t", *, volatile: bool = False) -> list[bytes]:
        memory = self._memories.of(volatile)
        log = await memory.working(Place("test", AGENT, thread), context={})
        return [] if log is None else log.entries

    async def facts(self, user: str = "ann") -> list[Fact]:
        return (await self._memories.of().facts(Person("test", AGENT, user), context={})).items

    async def fact(self, name: str, user: str = "ann") -> Fact | None:
        return await self._memories.of().fact(Person("test", AGENT, user), name, context={})

    async def put(self, name: str, value: str, user: str = "ann") -> None:
        person = Person("test", AGENT, user)
        await self._memories.of().put_fact(person, name, value, expect=None, context={})
