"""Where `aggregate` keeps its groups: each a log of its own, changed by compare-and-set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from blocks.control.aggregate_group import Group
from flowrt.errors import FlowError, VersionConflict
from flowrt.storage.tiers import Space

ATTEMPTS = 5
"""How often a change is tried when other processes change the same group."""


class Kept(NamedTuple):
    """A stored group, and its elements where they were read."""

    group: Group
    version: int
    elements: list[bytes]


class Change(NamedTuple):
    """What a message makes of a group: its new state and element, and why it is complete, if."""

    group: Group
    element: list[bytes]
    reason: str


class Groups:
    """The groups of one `storeKey`.

    `ttl` is how many seconds one stays that nobody changes or takes; None keeps it for good. With
    `whole` each change sees the elements, which costs what is stored; else it costs what is new.
    """

    def __init__(self, store_key: str, ttl: float | None, *, whole: bool) -> None:
        escaped = store_key.replace("%", "%25").replace("/", "%2F")
        self._prefix = f"aggregate/{escaped}/"
        self._ttl = ttl
        self._whole = whole

    async def change(
        self,
        space: Space,
        key: str,
        change: Callable[[Kept | None], Change],
        opening: Callable[[], Awaitable[None]],
    ) -> tuple[Change, list[bytes]]:
        """Store what `change` makes of a group, or remove a group that is complete.

        `opening` is awaited before a group is stored that was not. Returns the change and, where
        it completed the group, all elements. `change` may be called several times, each with the
        newest state. Raises `FlowError` after `ATTEMPTS`.
        """
        # Messages of this process take turns: a split sends many at once, and they would use up
        # each other's attempts, which are for other processes.
        async with space.turns(self._prefix + key) as turns, turns.lock:
            for _ in range(ATTEMPTS):
                kept = await self._read(space, key, entries=self._whole)
                made = change(kept)
                if not made.reason:
                    if kept is None:
                        await opening()
                    if await self._append(space, kept, made):
                        return made, []
                elif kept is None:
                    return made, made.element
                elif (elements := await self.take(space, kept)) is not None:
                    return made, elements + made.element
        raise FlowError(
            f"group {key!r} was changed by others {ATTEMPTS} times while this message was joining "
            "it; send the messages of one group to fewer replicas"
        )

    async def take(self, space: Space, kept: Kept) -> list[bytes] | None:
        """Remove a group and return its elements; None where others have changed it meanwhile."""
        log = await space.read_log(self._prefix + kept.group.key)
        if log is None or log.version != kept.version:
            return None
        try:
            deleted = await space.delete(self._prefix + kept.group.key, expect=kept.version)
        except VersionConflict:
            return None
        return log.entries if deleted else None

    async def count(self, space: Space, limit: int) -> int:
        """How many groups there are; counts little further than `limit`."""
        count, after = 0, None
        while count < limit:
            page = await space.scan(self._prefix, after=after)
            count += len(page.keys)
            after = page.after
            if after is None:
                break
        return count

    async def all(self, space: Space) -> AsyncIterator[Kept]:
        """Every group, in the order of their keys, without elements."""
        after = None
        while True:
            page = await space.scan(self._prefix, after=after)
            for key in page.keys:
                kept = await self._read(space, key.name.removeprefix(self._prefix), entries=False)
                if kept is not None:
                    yield kept
            after = page.after
            if after is None:
                return

    async def _read(self, space: Space, key: str, *, entries: bool) -> Kept | None:
        log = await space.read_log(self._prefix + key, entries=entries)
        if log is None:
            return None
        return Kept(Group.from_json(log.head), log.version, log.entries)

    async def _append(self, space: Space, kept: Kept | None, made: Change) -> bool:
        try:
            await space.append(
                self._prefix + made.group.key,
                made.element,
                head=made.group.to_json(),
                expect=kept.version if kept else 0,
                ttl=self._ttl,
            )
        except VersionConflict:
            return False
        return True
