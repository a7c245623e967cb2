"""Values: what comes back, what is refused, versions, lifetimes."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest

from flowrt.errors import StoreError, VersionConflict
from flowrt.storage.protocol import KeyValue, Stored
from flowrt.testing.store_conformance.suite import Suite, conflicts, failures, in_a_loop, opened

ODD_KEYS = (
    "a:b",
    "../x",
    "*",
    "[a]?",
    "%",
    "_",
    "{a}",
    "a/b",
    " ",
    "\n",
    "nul\0inside",
    "\0",
    "lone \ud83d surrogate",
    "\U0001f600",
    "\uffff",
    "é",
    "e\u0301",
    "K" * 10_240,
)
"""Keys that a store may mistake for something else; no two of them are the same key."""

JSON_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    "",
    [],
    {},
    2**53 + 1,
    -(2**80),
    0.1,
    1e-300,
    -0.5,
    1.0,
    "plain",
    "nul \0 inside",
    "lone \ud83d surrogate",
    "\U0001f600 and \u2028",
    {"nul \0": {"lone \udc00": [1, [2, [3, {"a": None}]]]}},
    {"": {"": ""}},
    [[], [[]], {}],
)

NOT_JSON: tuple[tuple[Any, str], ...] = (
    ({"user": {"seen": [datetime(2026, 1, 1, tzinfo=UTC)]}}, r"user\.seen\[0\]"),
    ({"score": float("nan")}, "score"),
    ([1, float("inf")], r"\[1\]"),
    ({"tags": {"a"}}, "tags"),
    ({"pair": (1, 2)}, "pair"),
    ({"raw": b"x"}, "raw"),
    ({"by id": {1: "one"}}, "by id"),
)
"""Values that JSON would refuse or change, and the path that the refusal names."""


class ValueConformance(Suite):
    """`get`, `set`, `delete`."""

    @in_a_loop
    async def test_nothing_is_stored_at_an_unknown_key(self, store: KeyValue, space: str) -> None:
        assert await store.get(space, "k") is None
        assert await store.delete(space, "k") is False

    @in_a_loop
    async def test_json_values_come_back_equal(self, store: KeyValue, space: str) -> None:
        for number, value in enumerate(JSON_VALUES):
            await store.set(space, f"k{number}", value)
            found = await store.get(space, f"k{number}")
            assert Stored(value, 1) == found
            assert found is not None
            assert type(value) is type(found.value)

    @in_a_loop
    async def test_bytes_come_back_as_bytes(self, store: KeyValue, space: str) -> None:
        for value in (b"", b"\0", bytes(range(256)), b'{"json": "text"}'):
            await store.set(space, "k", value)
            found = await store.get(space, "k")
            assert found is not None
            assert value == found.value
            assert bytes is type(found.value)

    @in_a_loop
    async def test_a_value_may_change_its_kind(self, store: KeyValue, space: str) -> None:
        await store.set(space, "k", b"text")
        await store.set(space, "k", "text")
        assert Stored("text", 2) == await store.get(space, "k")

    @in_a_loop
    async def test_a_large_value_comes_back_whole(self, store: KeyValue, space: str) -> None:
        text, data = "é\0x" * (self.largest // 12), b"\0\xff" * (self.largest // 2)
        await store.set(space, "text", {"text": text})
        await store.set(space, "data", data)
        assert Stored({"text": text}, 1) == await store.get(space, "text")
        assert Stored(data, 1) == await store.get(space, "data")

    @in_a_loop
    async def test_every_key_is_only_itself(self, store: KeyValue, space: str) -> None:
        for number, key in enumerate(ODD_KEYS):
            assert 1 == await store.set(space, key, number), repr(key)
        for number, key in enumerate(ODD_KEYS):
            assert Stored(number, 1) == await store.get(space, key), repr(key)
        for key in ODD_KEYS:
            assert await store.delete(space, key), repr(key)
            assert await store.get(space, key) is None, repr(key)

    @in_a_loop
    async def test_spaces_do_not_mix(self, store: KeyValue, space: str) -> None:
        places = [(space, "a/b"), (f"{space}/a", "b"), (f"{space}:a", "b"), (space, "a:b")]
        places += [(f"{space}}}", "b"), (f"{space}%7D", "b")]
        for number, (where, key) in enumerate(places):
            assert 1 == await store.set(where, key, number)
        for number, (where, key) in enumerate(places):
            assert Stored(number, 1) == await store.get(where, key)

    @in_a_loop
    async def test_what_is_not_json_is_refused_by_path_and_nothing_is_written(
        self, store: KeyValue, space: str
    ) -> None:
        for value, path in NOT_JSON:
            with pytest.raises((TypeError, ValueError), match=path):
                await store.set(space, "k", value)
            assert await store.get(space, "k") is None

    @in_a_loop
    async def test_a_value_nested_too_deeply_is_refused_or_comes_back(
        self, store: KeyValue, space: str
    ) -> None:
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        with pytest.raises((TypeError, ValueError), match="deep"):
            await store.set(space, "k", deep)
        assert await store.get(space, "k") is None

    @in_a_loop
    async def test_what_is_stored_does_not_follow_the_object_it_came_from(
        self, store: KeyValue, space: str
    ) -> None:
        value = {"items": [1]}
        await store.set(space, "k", value)
        value["items"].append(2)
        first = await store.get(space, "k")
        assert first is not None
        assert {"items": [1]} == first.value
        first.value["items"].append(3)
        assert Stored({"items": [1]}, 1) == await store.get(space, "k")

    @in_a_loop
    async def test_versions_count_the_writes(self, store: KeyValue, space: str) -> None:
        assert 1 == await store.set(space, "k", "a")
        assert 2 == await store.set(space, "k", "b", expect=1)
        assert 3 == await store.set(space, "k", "c")
        assert Stored("c", 3) == await store.get(space, "k")

    @in_a_loop
    async def test_a_deleted_key_starts_again_at_version_1(
        self, store: KeyValue, space: str
    ) -> None:
        await store.set(space, "k", "a")
        await store.set(space, "k", "b")
        assert await store.delete(space, "k") is True
        assert 1 == await store.set(space, "k", "c", expect=0)
        assert Stored("c", 1) == await store.get(space, "k")

    @in_a_loop
    async def test_expecting_nothing_writes_only_where_nothing_is(
        self, store: KeyValue, space: str
    ) -> None:
        assert 1 == await store.set(space, "k", "a", expect=0)
        with pytest.raises(VersionConflict) as caught:
            await store.set(space, "k", "b", expect=0)
        assert ("k", 0, 1) == (caught.value.key, caught.value.expected, caught.value.actual)
        assert Stored("a", 1) == await store.get(space, "k")

    @in_a_loop
    async def test_a_write_on_an_old_version_changes_nothing(
        self, store: KeyValue, space: str
    ) -> None:
        await store.set(space, "k", "a")
        await store.set(space, "k", "b")
        errors = await failures(
            store.set(space, "k", "c", expect=1),
            store.set(space, "k", "c", expect=3),
            store.delete(space, "k", expect=1),
        )
        assert [("k", 1, 2), ("k", 3, 2), ("k", 1, 2)] == conflicts(errors)
        assert Stored("b", 2) == await store.get(space, "k")

    @in_a_loop
    async def test_a_write_on_a_version_of_a_missing_key_conflicts_with_0(
        self, store: KeyValue, space: str
    ) -> None:
        errors = await failures(
            store.set(space, "k", "a", expect=3), store.delete(space, "k", expect=3)
        )
        assert [("k", 3, 0)] * 2 == conflicts(errors)
        assert await store.get(space, "k") is None

    @in_a_loop
    async def test_a_delete_may_name_the_version(self, store: KeyValue, space: str) -> None:
        assert await store.delete(space, "k", expect=0) is False
        await store.set(space, "k", "a")
        assert await store.delete(space, "k", expect=1) is True
        assert await store.get(space, "k") is None

    @in_a_loop
    async def test_a_value_is_gone_when_its_lifetime_is_over(
        self, store: KeyValue, space: str
    ) -> None:
        await store.set(space, "k", "a", ttl=60)
        await self.advance(store, 30)
        assert Stored("a", 1) == await store.get(space, "k")
        await self.advance(store, 31)
        assert await store.get(space, "k") is None
        assert await store.delete(space, "k") is False
        assert 1 == await store.set(space, "k", "b", expect=0)

    @in_a_loop
    async def test_each_write_sets_the_lifetime_anew(self, store: KeyValue, space: str) -> None:
        await store.set(space, "longer", "a", ttl=60)
        await store.set(space, "for good", "a", ttl=60)
        await store.set(space, "shorter", "a")
        await store.set(space, "longer", "b", ttl=600)
        await store.set(space, "for good", "b")
        await store.set(space, "shorter", "b", ttl=60)
        await self.advance(store, 61)
        assert Stored("b", 2) == await store.get(space, "longer")
        assert Stored("b", 2) == await store.get(space, "for good")
        assert await store.get(space, "shorter") is None

    @in_a_loop
    async def test_a_refused_write_leaves_the_lifetime_alone(
        self, store: KeyValue, space: str
    ) -> None:
        await store.set(space, "k", "a", ttl=60)
        with pytest.raises(VersionConflict):
            await store.set(space, "k", "b", expect=7)
        await self.advance(store, 61)
        assert await store.get(space, "k") is None

    @in_a_loop
    async def test_a_lifetime_of_nothing_is_refused(self, store: KeyValue, space: str) -> None:
        for ttl in (0, -1, float("nan")):
            with pytest.raises(ValueError, match="ttl"):
                await store.set(space, "k", "a", ttl=ttl)
        assert await store.get(space, "k") is None

    @in_a_loop
    async def test_a_lifetime_of_a_thousand_years_is_a_long_one(
        self, store: KeyValue, space: str
    ) -> None:
        await store.set(space, "k", "a", ttl=1000 * 365 * 86400.0)
        await store.set(space, "l", "a", ttl=1e30)
        await self.advance(store, 86400)
        assert Stored("a", 1) == await store.get(space, "k")
        assert Stored("a", 1) == await store.get(space, "l")

    @in_a_loop
    async def test_a_log_is_not_a_value(self, store: KeyValue, space: str) -> None:
        await store.append(space, "k", [b"entry"])
        with pytest.raises(StoreError, match="'k'"):
            await store.get(space, "k")
        with pytest.raises(StoreError, match="'k'"):
            await store.set(space, "k", "a")
        log = await store.read_log(space, "k")
        assert log is not None
        assert ([b"entry"], 1) == (log.entries, log.version)

    def test_a_store_keeps_its_data_when_it_is_opened_again_in_another_loop(
        self, store: KeyValue, space: str
    ) -> None:
        async def fill() -> None:
            async with opened(store):
                await store.set(space, "k", {"a": 1})
                await store.append(space, "log", [b"one", b"two"], head={"h": 1})

        async def read() -> tuple[Any, Any, Any]:
            async with opened(store):
                log = await store.read_log(space, "log")
                assert log is not None
                return await store.get(space, "k"), log.entries, log.head

        asyncio.run(fill())
        assert (Stored({"a": 1}, 1), [b"one", b"two"], {"h": 1}) == asyncio.run(read())

    def test_opening_and_closing_twice_does_no_harm(self, store: KeyValue, space: str) -> None:
        async def work() -> Stored | None:
            await store.close()
            await store.open()
            await store.open()
            await store.set(space, "k", "a")
            found = await store.get(space, "k")
            await store.close()
            with contextlib.suppress(StoreError):
                await store.get(space, "k")
            await store.close()
            return found

        assert Stored("a", 1) == asyncio.run(work())
