"""Logs: a head, entries in order, versions and generations."""

from __future__ import annotations

import pytest

from flowrt.errors import StoreError
from flowrt.storage.protocol import KeyValue, Log, Stored
from flowrt.testing.store_conformance.suite import Suite, conflicts, failures, in_a_loop
from flowrt.testing.store_conformance.values import NOT_JSON, ODD_KEYS


class LogConformance(Suite):
    """`append`, `rewrite`, `read_log`."""

    @in_a_loop
    async def test_there_is_no_log_at_an_unknown_key(self, store: KeyValue, space: str) -> None:
        assert await store.read_log(space, "k") is None

    @in_a_loop
    async def test_appended_entries_are_read_in_order(self, store: KeyValue, space: str) -> None:
        assert 1 == await store.append(space, "k", [b"1", b"2"], head={"at": 2})
        assert 2 == await store.append(space, "k", [b"3"], head={"at": 3})
        expected = Log({"at": 3}, [b"1", b"2", b"3"], version=2, generation=1)
        assert expected == await store.read_log(space, "k")

    @in_a_loop
    async def test_an_append_replaces_the_head_also_by_nothing(
        self, store: KeyValue, space: str
    ) -> None:
        await store.append(space, "k", [], head={"at": 1})
        assert Log({"at": 1}, [], 1, 1) == await store.read_log(space, "k")
        await store.append(space, "k", [])
        assert Log(None, [], 2, 1) == await store.read_log(space, "k")

    @in_a_loop
    async def test_a_log_can_be_read_without_its_entries(self, store: KeyValue, space: str) -> None:
        assert await store.read_log(space, "k", entries=False) is None
        for number in range(3):
            await store.append(space, "k", [b"x"], head={"at": number})
        assert Log({"at": 2}, [], 3, 1) == await store.read_log(space, "k", entries=False)
        await store.set(space, "value", 1)
        with pytest.raises(StoreError):
            await store.read_log(space, "value", entries=False)

    @in_a_loop
    async def test_entries_are_any_bytes(self, store: KeyValue, space: str) -> None:
        entries = [b"", b"\0", bytes(range(256)), b"", b"\xff" * 300_000]
        await store.append(space, "k", entries)
        log = await store.read_log(space, "k")
        assert log is not None
        assert entries == log.entries

    @in_a_loop
    async def test_a_log_may_be_at_any_key(self, store: KeyValue, space: str) -> None:
        for number, key in enumerate(ODD_KEYS):
            await store.append(space, key, [b"%d" % number], head=key)
        for number, key in enumerate(ODD_KEYS):
            assert Log(key, [b"%d" % number], 1, 1) == await store.read_log(space, key)

    @in_a_loop
    async def test_a_log_takes_thousands_of_entries_at_once_and_one_by_one(
        self, store: KeyValue, space: str
    ) -> None:
        many = [b"%d" % number for number in range(20_000)]
        await store.append(space, "k", many)
        for number in range(300):
            await store.append(space, "k", [b"late %d" % number])
        log = await store.read_log(space, "k")
        assert log is not None
        assert many + [b"late %d" % number for number in range(300)] == log.entries
        await store.rewrite(space, "k", many[::-1])
        log = await store.read_log(space, "k")
        assert log is not None
        assert many[::-1] == log.entries

    @in_a_loop
    async def test_an_append_on_an_old_version_changes_nothing(
        self, store: KeyValue, space: str
    ) -> None:
        await store.append(space, "k", [b"1"], head="first", expect=0)
        await store.append(space, "k", [b"2"], head="second", expect=1)
        errors = await failures(
            store.append(space, "k", [b"x"], head="x", expect=0),
            store.append(space, "k", [b"x"], head="x", expect=1),
            store.rewrite(space, "k", [b"x"], head="x", expect=1),
            store.delete(space, "k", expect=1),
        )
        assert [("k", 0, 2), ("k", 1, 2), ("k", 1, 2), ("k", 1, 2)] == conflicts(errors)
        assert Log("second", [b"1", b"2"], 2, 1) == await store.read_log(space, "k")

    @in_a_loop
    async def test_an_append_to_a_missing_log_that_was_expected_conflicts(
        self, store: KeyValue, space: str
    ) -> None:
        errors = await failures(
            store.append(space, "k", [b"x"], expect=2),
            store.rewrite(space, "k", [b"x"], expect=2),
        )
        assert [("k", 2, 0)] * 2 == conflicts(errors)
        assert await store.read_log(space, "k") is None

    @in_a_loop
    async def test_a_rewrite_starts_a_generation(self, store: KeyValue, space: str) -> None:
        await store.append(space, "k", [b"1", b"2", b"3"], head="old")
        assert 2 == await store.rewrite(space, "k", [b"sum"], head="new", expect=1)
        assert Log("new", [b"sum"], 2, 2) == await store.read_log(space, "k")
        assert 3 == await store.append(space, "k", [b"4"], head="newer")
        assert Log("newer", [b"sum", b"4"], 3, 2) == await store.read_log(space, "k")
        assert 4 == await store.rewrite(space, "k", [])
        assert Log(None, [], 4, 3) == await store.read_log(space, "k")

    @in_a_loop
    async def test_a_rewrite_of_nothing_creates_a_log(self, store: KeyValue, space: str) -> None:
        assert 1 == await store.rewrite(space, "k", [b"1"], head="h", expect=0)
        assert Log("h", [b"1"], 1, 1) == await store.read_log(space, "k")

    @in_a_loop
    async def test_a_deleted_log_starts_again_without_its_entries(
        self, store: KeyValue, space: str
    ) -> None:
        await store.append(space, "k", [b"1"])
        await store.rewrite(space, "k", [b"2", b"3"])
        assert await store.delete(space, "k") is True
        assert await store.read_log(space, "k") is None
        assert 1 == await store.append(space, "k", [b"4"], expect=0)
        assert Log(None, [b"4"], 1, 1) == await store.read_log(space, "k")

    @in_a_loop
    async def test_a_value_may_follow_a_deleted_log(self, store: KeyValue, space: str) -> None:
        await store.append(space, "k", [b"1"])
        await store.delete(space, "k")
        assert 1 == await store.set(space, "k", "value")
        await store.delete(space, "k")
        assert 1 == await store.append(space, "k", [b"2"])
        assert Log(None, [b"2"], 1, 1) == await store.read_log(space, "k")

    @in_a_loop
    async def test_a_value_is_not_a_log(self, store: KeyValue, space: str) -> None:
        await store.set(space, "k", "value")
        errors = await failures(
            store.read_log(space, "k"),
            store.append(space, "k", [b"x"]),
            store.rewrite(space, "k", [b"x"]),
        )
        assert [StoreError] * 3 == [type(error) for error in errors]
        assert all("'k'" in str(error) for error in errors)
        assert Stored("value", 1) == await store.get(space, "k")

    @in_a_loop
    async def test_logs_do_not_see_each_others_entries(self, store: KeyValue, space: str) -> None:
        for number in range(20):
            for name in ("a", "a/b", "b"):
                await store.append(space, name, [f"{name} {number}".encode()])
        await store.delete(space, "a")
        await store.rewrite(space, "b", [b"short"])
        log = await store.read_log(space, "a/b")
        assert log is not None
        assert [f"a/b {number}".encode() for number in range(20)] == log.entries

    @in_a_loop
    async def test_what_a_log_cannot_hold_is_refused_and_nothing_is_written(
        self, store: KeyValue, space: str
    ) -> None:
        for head, path in NOT_JSON:
            with pytest.raises((TypeError, ValueError), match=path):
                await store.append(space, "k", [b"x"], head=head)
        entries: list[object] = [b"fine", "text"]
        for write in (store.append, store.rewrite):
            with pytest.raises((TypeError, ValueError), match="bytes"):
                await write(space, "k", entries)  # type: ignore[arg-type] # what callers get wrong
        assert await store.read_log(space, "k") is None

    @in_a_loop
    async def test_a_log_is_gone_as_a_whole_when_its_lifetime_is_over(
        self, store: KeyValue, space: str
    ) -> None:
        await store.append(space, "k", [b"1"], head="h", ttl=60)
        await self.advance(store, 50)
        await store.append(space, "k", [b"2"], head="h", ttl=60)
        await self.advance(store, 50)
        assert Log("h", [b"1", b"2"], 2, 1) == await store.read_log(space, "k")
        await self.advance(store, 11)
        assert await store.read_log(space, "k") is None
        assert 1 == await store.append(space, "k", [b"3"], expect=0)
        assert Log(None, [b"3"], 1, 1) == await store.read_log(space, "k")

    @in_a_loop
    async def test_a_rewrite_sets_the_lifetime_of_the_whole_log(
        self, store: KeyValue, space: str
    ) -> None:
        await store.append(space, "shorter", [b"1"])
        await store.rewrite(space, "shorter", [b"2"], ttl=60)
        await store.append(space, "for good", [b"1"], ttl=60)
        await store.rewrite(space, "for good", [b"2"])
        await self.advance(store, 61)
        assert await store.read_log(space, "shorter") is None
        assert Log(None, [b"2"], 2, 2) == await store.read_log(space, "for good")

    @in_a_loop
    async def test_an_append_without_a_lifetime_keeps_the_log_for_good(
        self, store: KeyValue, space: str
    ) -> None:
        await store.append(space, "k", [b"1"], ttl=60)
        await store.append(space, "k", [b"2"])
        await self.advance(store, 61)
        assert Log(None, [b"1", b"2"], 2, 1) == await store.read_log(space, "k")

    @in_a_loop
    async def test_what_was_read_does_not_change_with_the_log(
        self, store: KeyValue, space: str
    ) -> None:
        await store.append(space, "k", [b"1"])
        before = await store.read_log(space, "k")
        await store.append(space, "k", [b"2"])
        assert before is not None
        assert [b"1"] == before.entries
        before.entries.append(b"x")
        log = await store.read_log(space, "k")
        assert log is not None
        assert [b"1", b"2"] == log.entries
