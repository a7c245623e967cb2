"""What requests are put together from: archives and frames, through flowrt's own memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from flowrt.memory.agent_memory import StoredAgentMemory
from flowrt.memory.forgetting import forget_user
from flowrt.storage.agents.protocol import Place
from flowrt.storage.memory import MemoryStore
from flowrt.storage.tiers import Storage
from flowrt.testing.agent_memory_conformance.suite import Keeping, Suite, said

# Ids that look alike, and that would reach into each other's keys unescaped.
_IDS = ("t", "T", "a/t", "a%2Ft", "", "ä")


@asynccontextmanager
async def _memory(store: Keeping, service: str) -> AsyncIterator[tuple[Storage, StoredAgentMemory]]:
    storage = Storage(service, store, MemoryStore())
    try:
        yield storage, StoredAgentMemory(storage)
    finally:
        await storage.close()


class ArchiveConformance(Suite):
    """Archives and frames of `flowrt.memory.agent_memory`."""

    def test_an_archive_has_what_was_put_into_it_in_order_and_is_one_threads(
        self, store: Keeping, service: str
    ) -> None:
        async def main() -> None:
            async with _memory(store, service) as (_, memory):
                for turn in range(3):
                    for thread in _IDS:
                        text = f"{thread} {turn}".encode()
                        place = Place(service, "a", thread)
                        await memory.archive(place, [text, b"\xff\x00"], context={})
                for thread in _IDS:
                    wanted = [
                        each
                        for turn in range(3)
                        for each in (f"{thread} {turn}".encode(), b"\xff\x00")
                    ]
                    place = Place(service, "a", thread)
                    assert wanted == await memory.archived(place, context={})
                other = Place(service, "b", "t")
                assert await memory.archived(other, context={}) == []

        asyncio.run(main())

    def test_a_frame_is_kept_once_for_all_threads_of_an_agent(
        self, store: Keeping, service: str
    ) -> None:
        async def main() -> None:
            async with _memory(store, service) as (_, memory):
                place, another = Place(service, "a", "t"), Place(service, "a", "u")
                assert await memory.frame(place, "n", context={}) is None
                for where in (place, another):
                    await memory.keep_frame(where, "n", b"\x00frame", context={})
                assert await memory.frame(another, "n", context={}) == b"\x00frame"
                assert await memory.frame(Place(service, "b", "t"), "n", context={}) is None
                await memory.delete_thread(place, context={})
                assert await memory.frame(place, "n", context={}) == b"\x00frame"

        asyncio.run(main())

    def test_an_archive_goes_with_its_thread(self, store: Keeping, service: str) -> None:
        async def main() -> None:
            async with _memory(store, service) as (_, memory):
                gone, stays = Place(service, "a", "t"), Place(service, "a", "u")
                for place in (gone, stays):
                    await memory.archive(place, [b"x"], context={})
                    await memory.append_turns(place, said("hi"), context={})
                await memory.delete_thread(gone, context={})
                assert await memory.archived(gone, context={}) == []
                assert await memory.archived(stays, context={}) == [b"x"]

        asyncio.run(main())

    def test_the_archives_of_who_is_forgotten_are_gone(self, store: Keeping, service: str) -> None:
        async def main() -> None:
            async with _memory(store, service) as (storage, memory):
                places = [Place(service, "a", f"{user}{n}", user) for user in "uv" for n in "12"]
                for place in places:
                    await memory.append_turns(place, said("hi"), context={})
                    await memory.archive(place, [b"x"], context={})
                record, space = storage.agents(), storage.space("user")
                await forget_user(record, space, service, "u", dry_run=True)
                assert all([await memory.archived(place, context={}) for place in places])
                await forget_user(record, space, service, "u")
                kept = [bool(await memory.archived(place, context={})) for place in places]
                assert kept == [False, False, True, True]

        asyncio.run(main())
