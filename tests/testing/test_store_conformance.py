"""The store suite finds stores that are broken: one way each, with the test that has to say so."""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from flowrt.storage.memory import MemoryLease, MemoryStore
from flowrt.storage.protocol import KeyValue, Lease, Page, Stored
from flowrt.testing import StoreConformance
from flowrt.testing.store_conformance import leases
from tests.storage.hands import HandClock

Suite = StoreConformance


class LastWriterWins(MemoryStore):
    async def set(self, space: str, key: str, value: Any, **options: Any) -> int:
        return await super().set(space, key, value, ttl=options.get("ttl"))


class CutsAtNul(MemoryStore):
    async def set(self, space: str, key: str, value: Any, **options: Any) -> int:
        return await super().set(space, key.partition("\0")[0], value, **options)

    async def get(self, space: str, key: str) -> Stored | None:
        return await super().get(space, key.partition("\0")[0])


class JoinsSpaceAndKey(MemoryStore):
    async def set(self, space: str, key: str, value: Any, **options: Any) -> int:
        return await super().set("", f"{space}:{key}", value, **options)

    async def get(self, space: str, key: str) -> Stored | None:
        return await super().get("", f"{space}:{key}")


class HandsOutWhatItKeeps(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, Any] = {}

    async def set(self, space: str, key: str, value: Any, **options: Any) -> int:
        self._values[key] = value
        return await super().set(space, key, value, **options)

    async def get(self, space: str, key: str) -> Stored | None:
        found = await super().get(space, key)
        return found and Stored(self._values[key], found.version)


class SwallowsNotJson(MemoryStore):
    async def set(self, space: str, key: str, value: Any, **options: Any) -> int:
        return await super().set(space, key, repr(value), **options)


class ForgetsLifetimes(MemoryStore):
    async def append(self, *args: Any, **options: Any) -> int:
        return await super().append(*args, **(options | {"ttl": None}))


class ScansGlobs(MemoryStore):
    async def scan(
        self, space: str, prefix: str = "", *, after: str | None = None, limit: int = 500
    ) -> Page:
        page = await super().scan(space, "", after=after, limit=limit)
        keys = [key for key in page.keys if fnmatch.fnmatchcase(key.name, prefix + "*")]
        return Page(keys, page.after)


class NeverSaysLast(MemoryStore):
    async def scan(
        self, space: str, prefix: str = "", *, after: str | None = None, limit: int = 500
    ) -> Page:
        page = await super().scan(space, prefix, after=after, limit=limit)
        return Page(page.keys, page.keys[-1].name if page.keys else None)


class ReadsThenWrites(MemoryStore):
    async def append(self, space: str, key: str, entries: Sequence[bytes], **options: Any) -> int:
        log = await self.read_log(space, key)
        await asyncio.sleep(0)
        whole = [*(log.entries if log else []), *entries]
        return await super().rewrite(space, key, whole, **options)


class AppendsOneByOne(MemoryStore):
    async def append(self, space: str, key: str, entries: Sequence[bytes], **options: Any) -> int:
        version = 0
        for entry in entries:
            version = await super().append(space, key, [entry], **options)
            await asyncio.sleep(0)
        return version


class SwallowsCancellation(MemoryStore):
    async def append(self, space: str, key: str, entries: Sequence[bytes], **options: Any) -> int:
        version = await super().append(space, key, entries, **options)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            return version
        return version


class LeaksAClaim(MemoryStore):
    async def try_lease(self, space: str, key: str, **options: Any) -> MemoryLease | None:
        lease = await super().try_lease(space, key, **options)
        await asyncio.sleep(0)
        return lease


class LosesARelease(MemoryStore):
    async def try_lease(self, space: str, key: str, **options: Any) -> MemoryLease | None:
        lease = await super().try_lease(space, key, **options)
        if lease is not None:
            release = lease.release

            async def slow() -> None:
                await asyncio.sleep(0)
                await release()

            lease.release = slow  # type: ignore[method-assign]
        return lease


class ReleasesAnybodys(MemoryStore):
    async def try_lease(self, space: str, key: str, **options: Any) -> MemoryLease | None:
        lease = await super().try_lease(space, key, **options)
        if lease is not None:

            async def release() -> None:
                self._leases.pop((space, key), None)

            lease.release = release  # type: ignore[method-assign]
        return lease


class Checked(StoreConformance):
    """The hooks of the store in memory."""

    clock = HandClock()

    def another(self, store: KeyValue) -> KeyValue:
        return store

    async def advance(self, store: KeyValue, seconds: float) -> None:
        self.clock.advance(seconds)

    async def take_away(self, store: KeyValue, lease: Lease) -> None:
        await store.close()


BROKEN: list[tuple[type[MemoryStore], Callable[..., None]]] = [
    (LastWriterWins, Suite.test_a_write_on_an_old_version_changes_nothing),
    (LastWriterWins, Suite.test_of_two_writers_on_one_version_one_wins),
    (CutsAtNul, Suite.test_every_key_is_only_itself),
    (JoinsSpaceAndKey, Suite.test_spaces_do_not_mix),
    (HandsOutWhatItKeeps, Suite.test_what_is_stored_does_not_follow_the_object_it_came_from),
    (SwallowsNotJson, Suite.test_what_is_not_json_is_refused_by_path_and_nothing_is_written),
    (SwallowsNotJson, Suite.test_json_values_come_back_equal),
    (ForgetsLifetimes, Suite.test_a_log_is_gone_as_a_whole_when_its_lifetime_is_over),
    (ScansGlobs, Suite.test_a_prefix_is_compared_exactly),
    (NeverSaysLast, Suite.test_the_last_page_says_so),
    (ReadsThenWrites, Suite.test_of_25_concurrent_appends_none_is_lost),
    (AppendsOneByOne, Suite.test_a_cancelled_write_happens_whole_or_not_at_all),
    (SwallowsCancellation, Suite.test_a_cancelled_write_happens_whole_or_not_at_all),
    (LeaksAClaim, Suite.test_a_claim_that_is_cancelled_at_any_await_holds_nothing),
    (LosesARelease, Suite.test_a_release_that_is_cancelled_at_any_await_has_released),
    (ReleasesAnybodys, Suite.test_a_released_lease_takes_nothing_from_the_next_holder),
]


@pytest.mark.parametrize(("store", "test"), BROKEN)
def test_a_broken_store_is_found(
    store: type[MemoryStore], test: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RELEASE_SECONDS", 0.05)
    with pytest.raises((AssertionError, pytest.fail.Exception, TimeoutError)):
        test(Checked(), store(), "broken/user")


@pytest.mark.parametrize("test", list(dict.fromkeys(test for _, test in BROKEN)))
def test_the_same_test_passes_a_store_that_is_whole(test: Callable[..., None]) -> None:
    suite = Checked()
    suite.clock = HandClock()
    test(suite, MemoryStore(clock=suite.clock), "whole/user")


def test_a_store_that_forgets_the_hooks_is_told_which() -> None:
    suite = StoreConformance()
    with pytest.raises(NotImplementedError, match="override `another`"):
        suite.another(MemoryStore())
