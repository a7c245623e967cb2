"""Where `aggregate` keeps its groups: each under a key of its own, changed by compare-and-set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from blocks.control.aggregate_group import Group
from flowrt.errors import FlowError, VersionConflict
from flowrt.storage.tiers import Space

ATTEMPTS = 5
"""How often a change is tried when other processes change the same group."""


class Kept(NamedTuple):
    """A stored group; `version` 0 where it is not stored yet."""

    group: Group
    version: int


class Groups:
    """The groups of one `storeKey`.

    `ttl` is how many seconds one stays that nobody changes or takes; None keeps it for good.
    """

    def __init__(self, store_key: str, ttl: float | None) -> None:
        escaped = store_key.replace("%", "%25").replace("/", "%2F")
        self._prefix = f"aggregate/{escaped}/"
        self._ttl = ttl

    async def get(self, space: Space, key: str) -> Kept | None:
        """The group of a key, or None."""
        stored = await space.get(self._prefix + key)
        return None if stored is None else Kept(Group.from_json(stored.value), stored.version)

    async def change(
        self,
        space: Space,
        key: str,
        join: Callable[[Group | None], Group],
        complete: Callable[[Group], str],
        opening: Callable[[], Awaitable[None]],
    ) -> tuple[Group, str]:
        """Store what `join` makes of the group, or remove it where `complete` gives a reason.

        `opening` is awaited before a group is stored that was not. Returns the group and the
        reason. `join` may be called several times, each with the newest state. Raises `FlowError`
        after `ATTEMPTS`.
        """
        # Messages of this process take turns: a split sends many at once, and they would use up
        # each other's attempts, which are for other processes.
        async with space.turns(self._prefix + key) as turns, turns.lock:
            for _ in range(ATTEMPTS):
                kept = await self.get(space, key)
                group = join(kept.group if kept else None)
                reason = complete(group)
                if kept is None and not reason:
                    await opening()
                try:
                    await self._put(space, key, Kept(group, kept.version if kept else 0), reason)
                except VersionConflict:
                    continue
                return group, reason
        raise FlowError(
            f"group {key!r} was changed by others {ATTEMPTS} times while this message was joining "
            "it; send the messages of one group to fewer replicas"
        )

    async def _put(self, space: Space, key: str, kept: Kept, reason: str) -> None:
        if not reason:
            value = kept.group.to_json()
            await space.set(self._prefix + key, value, expect=kept.version, ttl=self._ttl)
        elif kept.version:
            await space.delete(self._prefix + key, expect=kept.version)

    async def take(self, space: Space, kept: Kept) -> bool:
        """Remove a group to release it; False where somebody has changed or taken it meanwhile."""
        try:
            return await space.delete(self._prefix + kept.group.key, expect=kept.version)
        except VersionConflict:
            return False

    async def count(self, space: Space, limit: int) -> int:
        """How many groups there are; counts no further than `limit`."""
        count, after = 0, None
        while count < limit:
            page = await space.scan(self._prefix, after=after)
            count += len(page.keys)
            after = page.after
            if after is None:
                break
        return count

    async def all(self, space: Space) -> AsyncIterator[Kept]:
        """Every group, in the order of their keys."""
        after = None
        while True:
            page = await space.scan(self._prefix, after=after)
            for key in page.keys:
                kept = await self.get(space, key.name.removeprefix(self._prefix))
                if kept is not None:
                    yield kept
            after = page.after
            if after is None:
                return
