"""Scans: exact prefixes, order, pages."""

from __future__ import annotations

import asyncio

from flowrt.storage.protocol import Key, KeyValue
from flowrt.testing.store_conformance.suite import Suite, in_a_loop
from flowrt.testing.store_conformance.values import ODD_KEYS


async def names(store: KeyValue, space: str, prefix: str = "", *, limit: int = 500) -> list[str]:
    """All keys with a prefix, page by page."""
    found: list[str] = []
    after: str | None = None
    while True:
        page = await store.scan(space, prefix, after=after, limit=limit)
        assert len(page.keys) <= limit
        found += [key.name for key in page.keys]
        if page.after is None:
            return found
        assert [page.after] == found[-1:]
        after = page.after


class ScanConformance(Suite):
    """`scan`."""

    @in_a_loop
    async def test_a_scan_of_nothing_is_one_empty_page(self, store: KeyValue, space: str) -> None:
        page = await store.scan(space)
        assert ([], None) == (page.keys, page.after)

    @in_a_loop
    async def test_a_scan_says_kind_and_version(self, store: KeyValue, space: str) -> None:
        await store.set(space, "a", 1)
        await store.set(space, "a", 2)
        await store.set(space, "b", b"bytes")
        await store.append(space, "c", [b"entry"])
        page = await store.scan(space)
        assert [Key("a", 2, "value"), Key("b", 1, "value"), Key("c", 1, "log")] == page.keys

    @in_a_loop
    async def test_keys_come_in_the_order_of_their_code_points(
        self, store: KeyValue, space: str
    ) -> None:
        for key in reversed(ODD_KEYS):
            await store.set(space, key, 1)
        assert sorted(ODD_KEYS) == await names(store, space)
        assert sorted(ODD_KEYS) == await names(store, space, limit=1)

    @in_a_loop
    async def test_a_prefix_is_compared_exactly(self, store: KeyValue, space: str) -> None:
        keys = [
            f"{start}{end}" for start in ("a*", "a%", "a_", "a:", "a", "A", "á") for end in "12"
        ]
        keys += ["a", "*", "ab", "a\0", "a\U0010ffff", "a\uffff", "b"]
        for key in keys:
            await store.set(space, key, 1)
        for prefix in (
            "",
            "a",
            "a*",
            "a%",
            "a_",
            "a:",
            "A",
            "á",
            "*",
            "a[",
            "a\0",
            "zzz",
            "a\U0010ffff",
        ):
            expected = sorted(key for key in keys if key.startswith(prefix))
            assert expected == await names(store, space, prefix, limit=3), prefix

    @in_a_loop
    async def test_the_last_page_says_so(self, store: KeyValue, space: str) -> None:
        for key in "abcd":
            await store.set(space, key, 1)
        first = await store.scan(space, limit=2)
        assert (["a", "b"], "b") == ([key.name for key in first.keys], first.after)
        second = await store.scan(space, after=first.after, limit=2)
        assert (["c", "d"], None) == ([key.name for key in second.keys], second.after)

    @in_a_loop
    async def test_a_scan_goes_on_behind_a_key_that_is_gone(
        self, store: KeyValue, space: str
    ) -> None:
        for key in ("p1", "p2", "p3", "q"):
            await store.set(space, key, 1)
        await store.delete(space, "p2")
        page = await store.scan(space, "p", after="p2")
        assert ["p3"] == [key.name for key in page.keys]

    @in_a_loop
    async def test_a_start_outside_the_prefix_widens_nothing(
        self, store: KeyValue, space: str
    ) -> None:
        for key in ("a", "p1", "p2", "q"):
            await store.set(space, key, 1)
        before = await store.scan(space, "p", after="a")
        assert ["p1", "p2"] == [key.name for key in before.keys]
        behind = await store.scan(space, "p", after="q")
        assert ([], None) == (behind.keys, behind.after)

    @in_a_loop
    async def test_spaces_are_scanned_apart(self, store: KeyValue, space: str) -> None:
        for where in (space, f"{space}/a", f"{space}_volatile"):
            await store.set(where, where, 1)
        for where in (space, f"{space}/a", f"{space}_volatile"):
            assert [where] == await names(store, where)

    @in_a_loop
    async def test_what_is_deleted_or_over_is_not_found(self, store: KeyValue, space: str) -> None:
        for number in range(30):
            ttl = 60 if number % 3 == 1 else None
            await store.set(space, f"k{number:02}", 1, ttl=ttl)
        await store.append(space, "k98", [b"entry"], ttl=60)
        await store.append(space, "k99", [b"entry"], ttl=600)
        for number in range(0, 30, 3):
            await store.delete(space, f"k{number:02}")
        await self.advance(store, 61)
        expected = [f"k{number:02}" for number in range(2, 30, 3)] + ["k99"]
        assert expected == await names(store, space, limit=4)

    @in_a_loop
    async def test_a_key_that_came_back_after_its_lifetime_is_found_once(
        self, store: KeyValue, space: str
    ) -> None:
        await store.set(space, "k", 1, ttl=60)
        await self.advance(store, 61)
        await store.set(space, "k", 2)
        page = await store.scan(space)
        assert [Key("k", 1, "value")] == page.keys

    @in_a_loop
    async def test_ten_thousand_keys_are_scanned_in_pages(
        self, store: KeyValue, space: str
    ) -> None:
        keys = [f"user:{number * 7919 % 10_000}" for number in range(10_000)]
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            await asyncio.gather(*(store.set(space, key, 1) for key in part))
        assert sorted(keys) == await names(store, space)
        expected = sorted(key for key in keys if key.startswith("user:77"))
        assert expected == await names(store, space, "user:77", limit=17)
