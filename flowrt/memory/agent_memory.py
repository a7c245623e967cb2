"""What an agent with an `agentId` remembers, behind one seam: context, record and facts.

Three things are kept apart (dialect 5.6): the **working context** that the model is shown, which
compaction may shorten; the **record** of what was said, which nothing shortens; and the **facts**
about a person, which outlive the thread they were said on.

Every call takes `context`: the map that the block's `forwardContext` gave for this run, empty
where it has none. It is for the memory, such as a key to encrypt with; it is not to be kept
beyond the call and never to be logged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from flowrt.storage.agents.protocol import (
    AgentStore,
    Fact,
    NewTurn,
    Page,
    Person,
    Place,
    Removed,
    ThreadInfo,
    Turn,
)
from flowrt.storage.protocol import Log
from flowrt.storage.tiers import Space, Storage

if TYPE_CHECKING:
    from flowrt.memory.search.recall import Found, Recall

Context = Mapping[str, Any]


class AgentMemory(Protocol):
    """Where agents remember. Every method may raise `StoreError`.

    Versions, pages and who sees what are as `flowrt.storage.agents.protocol` says; the working
    context is a log as `flowrt.storage.protocol` has them, and costs what is new.
    """

    async def working(self, place: Place, *, context: Context) -> Log | None:
        """The working context of a thread, or None where there is none."""
        ...

    async def append_working(
        self, place: Place, entries: Sequence[bytes], *, head: Any, expect: int, context: Context
    ) -> int:
        """Add to the working context; the new version. Raises `VersionConflict`."""
        ...

    async def rewrite_working(
        self, place: Place, entries: Sequence[bytes], *, head: Any, expect: int, context: Context
    ) -> int:
        """Replace the working context; the new version. Raises `VersionConflict`."""
        ...

    async def archive(self, place: Place, entries: Sequence[bytes], *, context: Context) -> None:
        """Keep, behind what was kept before, what leaves the working context of a thread."""
        ...

    async def archived(self, place: Place, *, context: Context) -> list[bytes]:
        """All that was archived of a thread, oldest first."""
        ...

    async def keep_frame(self, place: Place, name: str, frame: bytes, *, context: Context) -> None:
        """Keep what many requests of an agent have in common, once for all its threads.

        A name has one content: where it is kept already, nothing is to be done.
        """
        ...

    async def frame(self, place: Place, name: str, *, context: Context) -> bytes | None:
        """A frame of the agent, or None where there is none of that name."""
        ...

    async def append_turns(
        self, place: Place, turns: Sequence[NewTurn], *, context: Context
    ) -> list[Turn]:
        """Record what was said, all of it or nothing, and give it with its numbers."""
        ...

    async def touch(self, place: Place, *, context: Context) -> ThreadInfo:
        """Note that a thread was worked on; creates it."""
        ...

    async def turns(
        self,
        place: Place,
        *,
        after: int = 0,
        limit: int = 500,
        newest_first: bool = False,
        context: Context,
    ) -> Page[Turn]:
        """What was said on a thread."""
        ...

    async def thread(self, place: Place, *, context: Context) -> ThreadInfo | None:
        """What is known of a thread."""
        ...

    async def threads(
        self,
        service: str,
        agent: str,
        *,
        user: str | None = None,
        after: str | None = None,
        limit: int = 100,
        context: Context,
    ) -> Page[ThreadInfo]:
        """Threads of an agent, the last active first; of one user, or of everybody and nobody."""
        ...

    async def set_title(self, place: Place, title: str, *, context: Context) -> None:
        """Name a thread."""
        ...

    async def delete_thread(self, place: Place, *, context: Context) -> Removed:
        """Remove a thread: working context, archive, turns and what is known of it. Facts stay."""
        ...

    async def facts(
        self, person: Person, *, after: str | None = None, limit: int = 100, context: Context
    ) -> Page[Fact]:
        """What is known about a person, the last changed first."""
        ...

    async def fact(self, person: Person, name: str, *, context: Context) -> Fact | None:
        """One fact, with its earlier values."""
        ...

    async def put_fact(
        self,
        person: Person,
        name: str,
        value: str,
        *,
        expect: int | None,
        thread: str = "",
        seq: int = 0,
        context: Context,
    ) -> Fact:
        """Create (`expect=0`) or change a fact, and note the turn it came from."""
        ...

    async def delete_fact(self, person: Person, name: str, *, context: Context) -> bool:
        """Remove a fact; whether there was one."""
        ...

    async def search(self, person: Person, query: str, *, limit: int, context: Context) -> Found:
        """What the person's turns and facts hold about `query`, the best first."""
        ...

    async def close(self) -> None:
        """Let go of what was opened."""
        ...


PREFIX = "agents/"
"""What the keys of working contexts start with."""


def working_key(agent: str, thread: str) -> str:
    """Where a working context stands in the key-value store; each id escaped, so that none of
    them can reach into another's."""
    # An argument of the command line may be no UTF-8, and is then asked for as it is.
    parts = [quote(each, safe="", errors="surrogatepass") for each in (agent, thread)]
    return PREFIX + "/".join(parts)


ARCHIVES = "agents-archive/"
"""What the keys of archives start with."""

FRAMES = "agents-frames/"
"""What the keys of frames start with."""


def archive_key(agent: str, thread: str) -> str:
    """Where the archive of a thread stands, beside its working context."""
    return f"{ARCHIVES}{quote(agent, safe='')}/{quote(thread, safe='')}"


def frame_key(agent: str, name: str) -> str:
    """Where a frame of an agent stands."""
    return f"{FRAMES}{quote(agent, safe='')}/{quote(name, safe='')}"


async def drop_context(space: Space, agent: str, thread: str) -> bool:
    """Remove the working context of a thread with its archive; whether there was a context.

    The archive first: the context, and the thread in the record, are what it is found by.
    """
    await space.delete(archive_key(agent, thread))
    return await space.delete(working_key(agent, thread))


class StoredAgentMemory:
    """The memory that flowrt brings: one tier of a service's own storage. Ignores `context`.

    `recall` gives what searches the tier; with `learns`, it is told what is new as it is stored.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        volatile: bool = False,
        recall: Callable[[], Recall] | None = None,
        learns: bool = False,
    ) -> None:
        self._storage = storage
        self._volatile = volatile
        self._make_recall = recall
        self._learns = learns
        self._recall: Recall | None = None
        self._agents: AgentStore | None = None

    @property
    def _record(self) -> AgentStore:
        # On first use: a service without such agents may have a store that keeps no record.
        if self._agents is None:
            self._agents = self._storage.agents(volatile=self._volatile)
        return self._agents

    @property
    def _space(self) -> Space:
        return self._storage.space("user_volatile" if self._volatile else "user")

    async def working(self, place: Place, *, context: Context) -> Log | None:
        # First of all calls of a run: a store that keeps no record fails it here, not at its end.
        _ = self._record
        return await self._space.read_log(working_key(place.agent, place.thread))

    async def append_working(
        self, place: Place, entries: Sequence[bytes], *, head: Any, expect: int, context: Context
    ) -> int:
        key = working_key(place.agent, place.thread)
        return await self._space.append(key, entries, head=head, expect=expect)

    async def rewrite_working(
        self, place: Place, entries: Sequence[bytes], *, head: Any, expect: int, context: Context
    ) -> int:
        key = working_key(place.agent, place.thread)
        return await self._space.rewrite(key, entries, head=head, expect=expect)

    async def archive(self, place: Place, entries: Sequence[bytes], *, context: Context) -> None:
        await self._space.append(archive_key(place.agent, place.thread), entries)

    async def archived(self, place: Place, *, context: Context) -> list[bytes]:
        log = await self._space.read_log(archive_key(place.agent, place.thread))
        return log.entries if log is not None else []

    async def keep_frame(self, place: Place, name: str, frame: bytes, *, context: Context) -> None:
        key = frame_key(place.agent, name)
        if await self._space.get(key) is None:
            await self._space.set(key, frame)

    async def frame(self, place: Place, name: str, *, context: Context) -> bytes | None:
        stored = await self._space.get(frame_key(place.agent, name))
        return stored.value if stored is not None else None

    async def append_turns(
        self, place: Place, turns: Sequence[NewTurn], *, context: Context
    ) -> list[Turn]:
        recorded = await self._record.append_turns(place, turns)
        if recorded and recorded[0].user:
            self._learn(Person(place.service, place.agent, recorded[0].user))
        return recorded

    async def touch(self, place: Place, *, context: Context) -> ThreadInfo:
        return await self._record.touch(place)

    async def turns(
        self,
        place: Place,
        *,
        after: int = 0,
        limit: int = 500,
        newest_first: bool = False,
        context: Context,
    ) -> Page[Turn]:
        return await self._record.turns(place, after=after, limit=limit, newest_first=newest_first)

    async def thread(self, place: Place, *, context: Context) -> ThreadInfo | None:
        return await self._record.thread(place)

    async def threads(
        self,
        service: str,
        agent: str,
        *,
        user: str | None = None,
        after: str | None = None,
        limit: int = 100,
        context: Context,
    ) -> Page[ThreadInfo]:
        return await self._record.threads(service, agent, user=user, after=after, limit=limit)

    async def set_title(self, place: Place, title: str, *, context: Context) -> None:
        await self._record.set_title(place, title)

    async def delete_thread(self, place: Place, *, context: Context) -> Removed:
        # The context first: what is left after a crash between the two is found by its thread.
        await drop_context(self._space, place.agent, place.thread)
        return await self._record.delete_thread(place)

    async def facts(
        self, person: Person, *, after: str | None = None, limit: int = 100, context: Context
    ) -> Page[Fact]:
        return await self._record.facts(person, after=after, limit=limit)

    async def fact(self, person: Person, name: str, *, context: Context) -> Fact | None:
        return await self._record.fact(person, name)

    async def put_fact(
        self,
        person: Person,
        name: str,
        value: str,
        *,
        expect: int | None,
        thread: str = "",
        seq: int = 0,
        context: Context,
    ) -> Fact:
        fact = await self._record.put_fact(
            person, name, value, expect=expect, thread=thread, seq=seq
        )
        self._learn(person)
        return fact

    async def delete_fact(self, person: Person, name: str, *, context: Context) -> bool:
        return await self._record.delete_fact(person, name)

    async def search(self, person: Person, query: str, *, limit: int, context: Context) -> Found:
        return await self._search().search(person, query, limit=limit)

    def _search(self) -> Recall:
        if self._recall is None:
            from flowrt.memory.search.recall import Recall

            self._recall = self._make_recall() if self._make_recall else Recall(self._record)
        return self._recall

    def _learn(self, person: Person) -> None:
        """Have the vectors of what is new made in the background, where there are any."""
        if self._learns:
            self._search().learn(person)

    async def close(self) -> None:
        """Nothing: the storage is closed by the service."""
