"""Two at once, and writes that are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from flowrt.errors import VersionConflict
from flowrt.storage.protocol import KeyValue, Log, Stored
from flowrt.testing.store_conformance.stepping import CANCELS, Cancelled, cancelled_at
from flowrt.testing.store_conformance.suite import Suite, in_a_loop, opened


async def cancel_everywhere(
    start: Callable[[], Coroutine[Any, Any, Any]], check: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Run `start` again and again, cancelled at a later await each time, and `check` after each."""
    for late in CANCELS:
        step = 0
        while isinstance(await cancelled_at(start(), step, late=late), Cancelled):
            await check()
            step += 1
        await check()


class ConcurrencyConformance(Suite):
    """Versions under contention; cancellation."""

    @in_a_loop
    async def test_of_two_writers_on_one_version_one_wins(
        self, store: KeyValue, space: str
    ) -> None:
        async with opened(self.another(store)) as other:
            await store.set(space, "k", "base")
            results = await asyncio.gather(
                store.set(space, "k", "ours", expect=1),
                other.set(space, "k", "theirs", expect=1),
                return_exceptions=True,
            )
            assert 1 == sum(isinstance(result, VersionConflict) for result in results)
            assert 1 == results.count(2)
            expected = "ours" if results[0] == 2 else "theirs"
            assert Stored(expected, 2) == await store.get(space, "k")
            assert Stored(expected, 2) == await other.get(space, "k")

    @in_a_loop
    async def test_what_one_store_wrote_the_other_reads_at_once(
        self, store: KeyValue, space: str
    ) -> None:
        async with opened(self.another(store)) as other:
            for number in range(1, 50):
                assert number == await store.append(space, "k", [b"%d" % number], head=number)
                log = await other.read_log(space, "k")
                assert log is not None
                assert (number, number, number) == (log.version, log.head, len(log.entries))

    @in_a_loop
    async def test_of_25_concurrent_appends_none_is_lost(self, store: KeyValue, space: str) -> None:
        async with opened(self.another(store)) as other:
            versions = await asyncio.gather(
                *(
                    (store, other)[number % 2].append(
                        space, "k", [b"%d a" % number, b"%d b" % number]
                    )
                    for number in range(25)
                )
            )
            log = await store.read_log(space, "k")
        assert list(range(1, 26)) == sorted(versions)
        assert log is not None
        # Whole appends, in the order of their versions.
        order = sorted(range(25), key=versions.__getitem__)
        expected = [b"%d %s" % (number, half) for number in order for half in (b"a", b"b")]
        assert expected == log.entries

    @in_a_loop
    async def test_of_25_concurrent_increments_none_is_lost(
        self, store: KeyValue, space: str
    ) -> None:
        async def increment(through: KeyValue) -> None:
            while True:
                found = await through.get(space, "k")
                value, version = (found.value, found.version) if found else (0, 0)
                try:
                    await through.set(space, "k", value + 1, expect=version)
                except VersionConflict:
                    continue
                return

        async with opened(self.another(store)) as other:
            await asyncio.gather(*(increment((store, other)[n % 2]) for n in range(25)))
        assert Stored(25, 25) == await store.get(space, "k")

    @in_a_loop
    async def test_a_failing_write_does_not_fail_those_beside_it(
        self, store: KeyValue, space: str
    ) -> None:
        await store.set(space, "taken", "base")
        results = await asyncio.gather(
            *(
                store.set(space, "taken", "x", expect=0)
                if number % 3 == 0
                else store.append(space, "taken", [b"x"])
                if number % 3 == 1
                else store.set(space, f"k{number}", number, expect=0)
                for number in range(60)
            ),
            return_exceptions=True,
        )
        assert [1] * 20 == [result for result in results if not isinstance(result, BaseException)]
        for number in range(2, 60, 3):
            assert Stored(number, 1) == await store.get(space, f"k{number}")
        assert Stored("base", 1) == await store.get(space, "taken")

    @in_a_loop
    async def test_a_cancelled_write_happens_whole_or_not_at_all(
        self, store: KeyValue, space: str
    ) -> None:
        writes = 0

        async def write() -> None:
            nonlocal writes
            writes += 1
            await store.append(space, "k", [b"a", b"b"], head={"a": "b"})

        async def check() -> None:
            # Any write that still happens is before this one.
            await store.append(space, "k", [b"a", b"b"], head={"a": "b"})
            log = await store.read_log(space, "k")
            assert log is not None
            assert Log({"a": "b"}, [b"a", b"b"] * log.version, log.version, 1) == log
            assert log.version <= 2 * writes

        await cancel_everywhere(write, check)

    @in_a_loop
    async def test_a_cancelled_set_leaves_the_old_value_or_the_new(
        self, store: KeyValue, space: str
    ) -> None:
        await store.set(space, "k", "value 1")

        async def write() -> None:
            found = await store.get(space, "k")
            assert found is not None
            await store.set(space, "k", f"value {found.version + 1}", expect=found.version)

        async def check() -> None:
            await store.set(space, "other", "anything")
            found = await store.get(space, "k")
            assert found is not None
            assert f"value {found.version}" == found.value

        await cancel_everywhere(write, check)

    @in_a_loop
    async def test_a_store_works_on_after_many_cancelled_calls(
        self, store: KeyValue, space: str
    ) -> None:
        await store.set(space, "k", "x" * 10_000)
        for _ in range(100):
            task = asyncio.create_task(store.get(space, "k"))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        results = await asyncio.gather(*(store.get(space, "k") for _ in range(100)))
        assert [Stored("x" * 10_000, 1)] * 100 == results
