"""The agent memories of one service: the one of its storage, or the one its deployment names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from flowrt.errors import CallError, ModelError, StoreError
from flowrt.observe.log import get_logger
from flowrt.storage.tiers import Storage

if TYPE_CHECKING:
    from flowrt.llm.embedding import EmbeddingModel
    from flowrt.memory.agent_memory import AgentMemory
    from flowrt.memory.search.recall import Recall, Spawn

GROUP = "flowrt.memories"
"""The entry points among which the scheme of `FLOWRT_MEMORY` is looked up."""

MakeMemory = Callable[[str, "AgentMemory"], "AgentMemory"]
"""What an entry point names. It is called with the URL and with the memory that flowrt would use.

That one may be wrapped, for example to encrypt what goes through it, or left alone. It is called
once for the persistent and once for the volatile tier, when an agent first remembers there.
"""


_log = get_logger("flowrt.memory")


@runtime_checkable
class Sealing(Protocol):
    """A memory that hands on sealed texts only, which nothing behind it can read or embed."""

    seals: Literal[True]


class Memories:
    """Where the agents of a service remember, by tier."""

    def __init__(
        self,
        storage: Storage,
        url: str = "",
        make: MakeMemory | None = None,
        *,
        embeds: EmbeddingModel | None = None,
    ) -> None:
        self._storage = storage
        self._url = url
        self._make = make
        self.embeds = embeds
        self._made: dict[bool, AgentMemory] = {}
        self._recalls: dict[bool, Recall] = {}
        self.spawn: Spawn | None = None
        """Runs what is made in the background; set by the service."""

    @classmethod
    def from_environ(
        cls, storage: Storage, environ: Mapping[str, str], embeds: EmbeddingModel | None = None
    ) -> Memories:
        """What `FLOWRT_MEMORY` names; unset, the service's own storage.

        With `embeds`, memory is searched by meaning. Raises `CallError` for a scheme that nobody
        provides.
        """
        url = environ.get("FLOWRT_MEMORY", "")
        return cls(storage, url, _provider(url) if url else None, embeds=embeds)

    def of(self, volatile: bool = False) -> AgentMemory:
        """The memory of a tier. Facts about people are always in the persistent one."""
        if volatile not in self._made:
            # Here: every service has memories, and few have agents that use them.
            from flowrt.memory.agent_memory import StoredAgentMemory

            memory: AgentMemory = StoredAgentMemory(
                self._storage,
                volatile=volatile,
                recall=partial(self._recall, volatile),
                learns=self.embeds is not None,
            )
            self._made[volatile] = self._make(self._url, memory) if self._make else memory
        return self._made[volatile]

    def check(self) -> None:
        """Raise `CallError` where memory is to be searched by meaning and its texts are sealed.

        Vectors of what was sealed say nothing; those of the clear text, kept beside it, would tell
        whoever has the storage what it is about.
        """
        if self._make and self.embeds and isinstance(self.of(), Sealing):
            raise CallError(
                f"FLOWRT_MEMORY={self._url} seals what is remembered, so FLOWRT_EMBEDDINGS cannot "
                "embed it; leave FLOWRT_EMBEDDINGS out to search by what the memory itself offers, "
                "or remember in the service's own storage"
            )

    async def renew(self, service: str) -> None:
        """Make vectors anew where those that are stored are of another model or size.

        A model or a store that fails is logged: searches go by words meanwhile.
        """
        if self.embeds is None:
            return
        try:
            await self._recall(False).renew(service)
        except (ModelError, StoreError) as error:
            _log.warning("memory could not be embedded anew", error=str(error))

    def _recall(self, volatile: bool) -> Recall:
        """What searches a tier: one, so that what was embedded anew is not indexed again."""
        if volatile not in self._recalls:
            from flowrt.memory.search.meaning import Embedder
            from flowrt.memory.search.recall import Recall

            record = self._storage.agents(volatile=volatile)
            embedder = Embedder(self.embeds) if self.embeds else None
            self._recalls[volatile] = Recall(record, embedder, spawn=self.spawn)
        return self._recalls[volatile]

    async def close(self) -> None:
        """Close what was made; the next use makes it again."""
        made, self._made, self._recalls = self._made, {}, {}
        for memory in made.values():
            await memory.close()


def _provider(url: str) -> MakeMemory:
    from importlib.metadata import entry_points

    scheme = url.partition(":")[0]
    for point in entry_points(group=GROUP, name=scheme):
        make: MakeMemory = point.load()
        return make
    known = sorted(point.name for point in entry_points(group=GROUP))
    raise CallError(
        f"FLOWRT_MEMORY names the scheme {scheme!r}, which nobody provides; "
        + (f"there are {', '.join(known)}" if known else "install the package that does")
        + ", or leave it out to remember in the service's own storage"
    )
