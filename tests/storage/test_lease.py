"""Holding a key, on every store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from flowrt.errors import ThreadBusy
from flowrt.storage.lease import hold
from flowrt.storage.tiers import Space, Storage
from flowrt.testing.store_conformance.concurrency import cancel_everywhere

Connect = Callable[[], Storage]


async def is_free(space: Space, key: str = "agent-memory/t") -> bool:
    """Whether the key can be held at once."""
    try:
        async with hold(space, key, wait=0):
            return True
    except ThreadBusy:
        return False


async def test_one_holds_and_the_others_wait_in_the_order_they_came(connect: Connect) -> None:
    storage = connect()
    space = storage.space("user")
    order: list[int] = []
    inside = 0

    async def work(number: int) -> None:
        nonlocal inside
        async with hold(space, "k"):
            inside += 1
            assert 1 == inside
            order.append(number)
            await space.append("log", [b"%d" % number])
            inside -= 1

    await asyncio.gather(*(work(number) for number in range(20)))
    assert list(range(20)) == order
    await storage.close()


async def test_a_holder_elsewhere_is_waited_for(connect: Connect) -> None:
    ours, theirs = connect(), connect()
    entered = asyncio.Event()

    async def wait() -> None:
        async with hold(ours.space("user"), "k"):
            entered.set()

    async with hold(theirs.space("user"), "k"):
        waiting = asyncio.create_task(wait())
        for _ in range(20):
            await ours.space("user").get("anything")
        assert not entered.is_set()
    await asyncio.wait_for(waiting, 10)
    assert entered.is_set()
    await ours.close()
    await theirs.close()


async def test_who_does_not_wait_is_told_that_the_thread_is_busy(connect: Connect) -> None:
    ours, theirs = connect(), connect()
    async with hold(ours.space("user"), "agent-memory/room 1"):
        for storage in (ours, theirs):
            for wait in (0, 0.01):
                with pytest.raises(ThreadBusy, match="thread 'room 1' is busy"):
                    async with hold(storage.space("user"), "agent-memory/room 1", wait=wait):
                        pass
    assert await is_free(theirs.space("user"), "agent-memory/room 1")
    await ours.close()
    await theirs.close()


async def test_keys_and_namespaces_are_held_apart(connect: Connect) -> None:
    storage = connect()
    user, system = storage.space("user"), storage.space("system")
    volatile = storage.space("user_volatile")
    places = [(user, "k"), (user, "k2"), (system, "k"), (volatile, "k")]
    async with AsyncExitStack() as stack:
        for space, key in places:
            await stack.enter_async_context(hold(space, key, wait=0))
        assert [False] * 4 == [await is_free(space, key) for space, key in places]
    assert [True] * 4 == [await is_free(space, key) for space, key in places]
    await storage.close()


async def test_a_holder_that_fails_lets_go(connect: Connect) -> None:
    storage = connect()
    space = storage.space("user")
    with pytest.raises(ZeroDivisionError):
        async with hold(space, "agent-memory/t"):
            _ = 1 / 0
    assert await is_free(space)
    await storage.close()


async def test_a_run_that_is_cancelled_at_any_await_holds_nothing(connect: Connect) -> None:
    ours, theirs = connect(), connect()
    space = ours.space("user")

    async def run() -> None:
        async with hold(space, "agent-memory/t", wait=0):
            await space.append("log", [b"x"])

    async def check() -> None:
        assert await is_free(theirs.space("user"))
        assert await is_free(space)

    await cancel_everywhere(run, check)
    await ours.close()
    await theirs.close()


async def test_one_who_is_cancelled_while_waiting_leaves_the_others_their_turn(
    connect: Connect,
) -> None:
    storage = connect()
    space = storage.space("user")
    order: list[int] = []

    async def work(number: int) -> None:
        async with hold(space, "k"):
            order.append(number)

    async with hold(space, "k"):
        tasks = [asyncio.create_task(work(number)) for number in range(4)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        tasks[2].cancel()
        await asyncio.wait([tasks[0], tasks[2]])
    await asyncio.wait_for(asyncio.gather(tasks[1], tasks[3]), 10)
    assert [1, 3] == order
    assert await is_free(space, "k")
    await storage.close()


async def test_one_who_is_cancelled_while_polling_leaves_nothing_held(connect: Connect) -> None:
    ours, theirs = connect(), connect()

    async def work() -> None:
        async with hold(ours.space("user"), "agent-memory/t"):
            pass

    async with hold(theirs.space("user"), "agent-memory/t"):
        polling = asyncio.create_task(work())
        for _ in range(10):
            await ours.space("user").get("anything")
        polling.cancel()
        await asyncio.wait([polling])
        assert polling.cancelled()
    assert await is_free(ours.space("user"))
    assert await is_free(theirs.space("user"))
    await ours.close()
    await theirs.close()


async def test_the_holder_is_told_once_when_its_lease_is_gone(
    connect: Connect, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = connect()
    space = storage.space("user")
    lost = asyncio.Event()
    calls = 0

    def on_lost() -> None:
        nonlocal calls
        calls += 1
        lost.set()

    async with hold(space, "agent-memory/t", ttl=0.15, on_lost=on_lost) as lease:
        # What an operator's DEL or an expiry does: somebody else than the holder ends it.
        await lease.release()
        await asyncio.wait_for(lost.wait(), 10)
    assert 1 == calls
    assert "a lease was lost" in capsys.readouterr().err
    await storage.close()


async def test_nothing_is_left_running_when_the_holder_is_done(connect: Connect) -> None:
    storage = connect()
    space = storage.space("user")
    async with hold(space, "k", ttl=0.001) as lease:
        await lease.renew()
        for _ in range(20):
            await space.get("anything")
    # A task that was cancelled ends in the next turn of the loop.
    await asyncio.sleep(0)
    assert {asyncio.current_task()} == asyncio.all_tasks()
    await storage.close()


async def test_a_key_may_be_held_again_in_another_loop(connect: Connect) -> None:
    storage = connect()

    def elsewhere() -> bool:
        async def run() -> bool:
            other = connect()
            try:
                return await is_free(other.space("user"))
            finally:
                await other.close()

        return asyncio.run(run())

    async with hold(storage.space("user"), "agent-memory/t"):
        await storage.space("user").set("k", 1)
    assert await asyncio.to_thread(elsewhere)
    await storage.close()


def test_one_storage_serves_two_loops_one_after_the_other(connect: Connect) -> None:
    storage = connect()

    async def run() -> int:
        space = storage.space("user")
        async with hold(space, "k"):
            found = await space.get("count")
            version = await space.set("count", (found.value if found else 0) + 1)
        await storage.close()
        return version

    assert [1, 2, 3] == [asyncio.run(run()) for _ in range(3)]
