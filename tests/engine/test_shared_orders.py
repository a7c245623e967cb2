"""Messages of one order, in the store that carries them: their places, whatever happens to them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from flowrt.engine.delivery import Delivery
from flowrt.engine.transport import Payload, packed
from flowrt.message import Message
from flowrt.storage.mail.protocol import Terms
from flowrt.storage.objects import PREFIX
from tests.engine.test_shared_transport import replica, stop, taken_and_left, until
from tests.engine.test_shared_transport import service as service
from tests.services import flows, load


async def test_an_order_holds_though_the_replica_that_works_its_first_message_is_gone(
    redis_url: str, service: str
) -> None:
    """Its place is kept until another has taken it over, also where all listeners wait for it."""
    done: list[tuple[int, str]] = []

    async def work(payload: Payload, delivery: Delivery) -> Payload:
        await delivery.turn()
        done.append((payload["n"], delivery.id))
        return {}

    async with replica(redis_url, service) as one:
        for number in range(20):
            assert await one.transport.offer(
                "q", {"n": number}, order="thread", delivery=f"post {number}"
            )
        await taken_and_left(one, "queue q")
        consumer = await one.transport.consume("q", work, listeners=2, buffer=1)
        await until(lambda: 20 == len(done))
        await stop(consumer)
        assert [""] == await one.mail.heads("queue q", ["thread"])
    assert [(number, f"post {number}") for number in range(20)] == done


async def test_a_message_that_is_put_back_keeps_its_place_in_its_order(
    redis_url: str, service: str
) -> None:
    done: list[int] = []
    begun = asyncio.Event()

    async def hang(_: Payload, __: Delivery) -> Payload:
        begun.set()
        await asyncio.Event().wait()
        return {}

    async def work(payload: Payload, delivery: Delivery) -> Payload:
        await delivery.turn()
        done.append(payload["n"])
        return {}

    async with replica(redis_url, service) as one, replica(redis_url, service) as two:
        first = await one.transport.consume("q", hang, listeners=1, buffer=1)
        for number in range(3):
            await one.transport.offer("q", {"n": number}, order="thread")
        await begun.wait()
        second = await two.transport.consume("q", work, listeners=1, buffer=1)
        await stop(first)
        await until(lambda: 3 == len(done))
        await stop(second)
    assert [0, 1, 2] == done


async def test_an_order_goes_on_where_its_first_message_was_taken_away(
    redis_url: str, service: str
) -> None:
    async with replica(redis_url, service) as one:
        ids = [await one.mail.add("b", b"{}", 10, None, "thread") for _ in range(3)]
        await one.mail.open_box("b")
        first, second = await one.mail.read("b", "r", count=2, wait=1)
        assert "thread" == first.order
        assert [ids[0], ""] == await one.mail.heads("b", ["thread", "other"])
        assert await one.mail.park("b", first, "broken", Terms()) is False
        assert [ids[1]] == await one.mail.heads("b", ["thread"])
        assert not await one.mail.withdraw("b", second.id)
        assert ids[2] is not None
        assert await one.mail.withdraw("b", ids[2])
        await one.mail.settle("b", second, None)
        assert [""] == await one.mail.heads("b", ["thread"])


async def test_a_queued_message_that_comes_again_has_the_same_event_id(
    redis_url: str, service: str, tmp_path: Path
) -> None:
    """So what a flow has marked as begun under it is not taken for another one."""
    mark = {"type": "object-write", "settings": {"key": "body", "value": "eventID"}}
    document = flows(main=[mark])
    document["service"]["name"] = service
    document["flows"][0]["source"] = {"type": "queue", "settings": {"subject": "jobs"}}
    async with load(tmp_path, document, redis_url) as running:
        for body in ("first", "again"):
            await running.transport.offer("jobs", packed(Message(body)), delivery="message 1")
        await running.stop()
        await running.start(sources=True)
        ids, space = [], running.storage.space("user")
        async with asyncio.timeout(10):
            while len(ids) < 2:
                read = [await space.get(PREFIX + key) for key in ("first", "again")]
                ids = [stored.value for stored in read if stored is not None]
                await asyncio.sleep(0.005)
    assert ["message 1"] * 2 == ids
