"""Leases: one holder at a time, lost and noticed, safe to cancel."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flowrt.errors import LeaseLost
from flowrt.storage.protocol import KeyValue, Lease, Stored
from flowrt.testing.store_conformance.concurrency import cancel_everywhere
from flowrt.testing.store_conformance.scans import names
from flowrt.testing.store_conformance.suite import Suite, in_a_loop, opened
from flowrt.testing.store_conformance.values import ODD_KEYS

TTL = 600.0

RELEASE_SECONDS = 5.0
"""How long a release that was cancelled may still be under way."""


async def must_hold(store: KeyValue, space: str, key: str) -> Lease:
    """Claim a key that is free."""
    lease = await store.try_lease(space, key, ttl=TTL)
    assert lease is not None, f"{key!r} is held"
    return lease


async def becomes_free(store: KeyValue, space: str, key: str) -> None:
    """Claim and release a key that is free or is being released; without, it fails in seconds."""
    async with asyncio.timeout(RELEASE_SECONDS):
        while (lease := await store.try_lease(space, key, ttl=TTL)) is None:  # noqa: ASYNC110 - a store tells nobody
            await asyncio.sleep(0)
    await lease.release()


class LeaseConformance(Suite):
    """`try_lease`."""

    @in_a_loop
    async def test_a_key_has_one_holder(self, store: KeyValue, space: str) -> None:
        async with opened(self.another(store)) as other:
            lease = await must_hold(store, space, "k")
            assert "k" == lease.key
            assert await store.try_lease(space, "k", ttl=TTL) is None
            assert await other.try_lease(space, "k", ttl=TTL) is None
            await lease.release()
            taken = await must_hold(other, space, "k")
            assert await store.try_lease(space, "k", ttl=TTL) is None
            await taken.release()

    @in_a_loop
    async def test_of_25_who_claim_at_once_one_holds(self, store: KeyValue, space: str) -> None:
        async with opened(self.another(store)) as other:
            claims = await asyncio.gather(
                *((store, other)[n % 2].try_lease(space, "k", ttl=TTL) for n in range(25))
            )
            held = [lease for lease in claims if lease is not None]
            assert 1 == len(held)
            await held[0].release()

    @in_a_loop
    async def test_keys_and_spaces_are_held_apart(self, store: KeyValue, space: str) -> None:
        leases = [await must_hold(store, space, key) for key in ODD_KEYS]
        leases += [
            await must_hold(store, f"{space}/a", "b"),
            await must_hold(store, f"{space}:", "a"),
        ]
        for key in ODD_KEYS:
            assert await store.try_lease(space, key, ttl=TTL) is None
        for lease in leases:
            await lease.release()

    @in_a_loop
    async def test_a_lease_and_a_value_share_a_key(self, store: KeyValue, space: str) -> None:
        lease = await must_hold(store, space, "k")
        assert await store.get(space, "k") is None
        assert [] == await names(store, space)
        assert 1 == await store.set(space, "k", "value", expect=0)
        await store.delete(space, "k")
        await store.append(space, "k", [b"entry"])
        await lease.renew()
        await lease.release()
        assert ["k"] == await names(store, space)

    @in_a_loop
    async def test_a_renewed_lease_is_held_on(self, store: KeyValue, space: str) -> None:
        lease = await must_hold(store, space, "k")
        for _ in range(4):
            await self.advance(store, TTL * 0.6)
            await lease.renew()
        assert await store.try_lease(space, "k", ttl=TTL) is None
        await lease.release()

    @in_a_loop
    async def test_a_lost_lease_is_noticed_once_by_its_renewal(
        self, store: KeyValue, space: str
    ) -> None:
        losses: list[str] = []
        lease = await store.try_lease(space, "k", ttl=TTL, on_lost=lambda: losses.append("lost"))
        assert lease is not None
        await lease.renew()
        assert [] == losses
        await self.take_away(store, lease)
        for _ in range(2):
            with pytest.raises(LeaseLost, match="'k'"):
                await lease.renew()
        assert ["lost"] == losses
        await lease.release()
        await lease.release()

    @in_a_loop
    async def test_a_lost_lease_takes_nothing_from_the_next_holder(
        self, store: KeyValue, space: str
    ) -> None:
        lost = await must_hold(store, space, "k")
        await self.take_away(store, lost)
        with pytest.raises(LeaseLost):
            await lost.renew()
        await lost.release()
        lease = await must_hold(store, space, "k")
        await lost.release()
        with pytest.raises(LeaseLost):
            await lost.renew()
        assert await store.try_lease(space, "k", ttl=TTL) is None
        await lease.renew()
        await lease.release()

    @in_a_loop
    async def test_a_released_lease_takes_nothing_from_the_next_holder(
        self, store: KeyValue, space: str
    ) -> None:
        first = await must_hold(store, space, "k")
        await first.release()
        second = await must_hold(store, space, "k")
        await first.release()
        with pytest.raises(LeaseLost):
            await first.renew()
        assert await store.try_lease(space, "k", ttl=TTL) is None
        await second.release()

    @in_a_loop
    async def test_a_claim_that_is_cancelled_at_any_await_holds_nothing(
        self, store: KeyValue, space: str
    ) -> None:
        async def claim() -> None:
            # Not released: a claim that comes to its end is taken away below.
            held.append(await store.try_lease(space, "k", ttl=TTL))

        async def check() -> None:
            while held:
                lease = held.pop()
                assert lease is not None
                await lease.release()
            await becomes_free(store, space, "k")

        held: list[Lease | None] = []
        await cancel_everywhere(claim, check)

    @in_a_loop
    async def test_a_release_that_is_cancelled_at_any_await_has_released(
        self, store: KeyValue, space: str
    ) -> None:
        lease: list[Lease] = [await must_hold(store, space, "k")]

        async def release() -> None:
            await lease[0].release()

        async def check() -> None:
            await becomes_free(store, space, "k")
            lease[0] = await must_hold(store, space, "k")

        await cancel_everywhere(release, check)

    @in_a_loop
    async def test_a_renewal_that_is_cancelled_leaves_the_lease_held(
        self, store: KeyValue, space: str
    ) -> None:
        lease = await must_hold(store, space, "k")

        async def check() -> None:
            assert await store.try_lease(space, "k", ttl=TTL) is None
            await lease.renew()

        await cancel_everywhere(lease.renew, check)
        await lease.release()
        await becomes_free(store, space, "k")

    @in_a_loop
    async def test_under_leases_increments_need_no_versions(
        self, store: KeyValue, space: str
    ) -> None:
        async def increment(through: KeyValue) -> None:
            while (lease := await through.try_lease(space, "k", ttl=TTL)) is None:  # noqa: ASYNC110
                await asyncio.sleep(0)
            found = await through.get(space, "k")
            value: Any = found.value if found else 0
            await through.set(space, "k", value + 1)
            await lease.release()

        async with opened(self.another(store)) as other:
            await asyncio.gather(*(increment((store, other)[n % 2]) for n in range(10)))
        assert Stored(10, 10) == await store.get(space, "k")
