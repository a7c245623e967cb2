"""What topics and queues do, whatever carries them: inside a process, or over Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from flowrt.engine.delivery import Delivery
from flowrt.engine.local_transport import LocalTransport
from flowrt.engine.shared_transport import SharedTransport
from flowrt.engine.transport import NobodyListens, Payload, Subscription, Transport
from flowrt.engine.transports import transport_over
from flowrt.ids import new_id
from flowrt.storage.mail.protocol import Terms
from flowrt.storage.memory import MemoryStore
from flowrt.storage.tiers import Storage, parse_storage_url

Open = Callable[[int], Any]


@pytest.fixture(params=["memory", "redis"])
def opened(request: pytest.FixtureRequest) -> Open:
    """Opens a transport whose queues have room for so many messages."""
    url = "memory:" if request.param == "memory" else request.getfixturevalue("redis_url")
    service = f"test {new_id()}"

    @asynccontextmanager
    async def open_(places: int = 100) -> AsyncIterator[Transport]:
        storage = Storage(service, parse_storage_url(url), MemoryStore())
        mail = storage.mail()
        try:
            yield LocalTransport() if mail is None else SharedTransport(mail, Terms(places=places))
        finally:
            await storage.close()

    return open_


async def echo(payload: Payload, __: object = None) -> Payload:
    return payload


async def forever(_: Payload, __: object = None) -> Payload:
    await asyncio.Event().wait()
    return {}


def noting(heard: list[Payload]) -> Callable[[Payload], Awaitable[None]]:
    async def note(payload: Payload) -> None:
        heard.append(payload)

    return note


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not so():
            await asyncio.sleep(0.005)


async def stop(*subscriptions: Subscription) -> None:
    for subscription in subscriptions:
        await subscription.stop()


async def test_a_message_of_a_topic_reaches_every_subscriber_as_it_was_sent(opened: Open) -> None:
    sent = {"body": {"text": "ä\x00\ud800", "n": [1, 2.5, None]}, "variables": {}}
    async with opened() as transport:
        heard: list[list[Payload]] = [[], []]
        subscriptions = [
            await transport.subscribe("t", noting(list_), listeners=2, buffer=5) for list_ in heard
        ]
        for _ in range(3):
            await transport.publish("t", sent)
        await until(lambda: [3, 3] == [len(list_) for list_ in heard])
        await transport.idle()
        await stop(*subscriptions)
    assert [[sent] * 3] * 2 == heard


async def test_a_topic_that_nobody_hears_says_so(opened: Open) -> None:
    async with opened() as transport:
        with pytest.raises(NobodyListens, match="topic 't'"):
            await transport.publish("t", {})
        subscription = await transport.subscribe("t", noting([]), listeners=1, buffer=1)
        await stop(subscription)
        with pytest.raises(NobodyListens, match="topic 't'"):
            await transport.publish("t", {})
        with pytest.raises(NobodyListens, match="leaves the service"):
            await transport.publish("system:t", {})


async def test_a_message_of_a_queue_is_done_by_one_consumer(opened: Open) -> None:
    async with opened(1000) as transport:
        done: list[int] = []

        async def work(payload: Payload, __: object = None) -> Payload:
            done.append(payload["n"])
            return {}

        consumers = [await transport.consume("q", work, listeners=4, buffer=500) for _ in "ab"]
        for number in range(200):
            await transport.dispatch("q", {"n": number})
        await until(lambda: len(done) >= 200)
        await transport.idle()
        await stop(*consumers)
    assert list(range(200)) == sorted(done)


async def test_questions_get_their_own_answers(opened: Open) -> None:
    async with opened() as transport:
        consumer = await transport.consume("q", echo, listeners=8, buffer=100)
        answers = await asyncio.gather(*(transport.request("q", {"n": n}) for n in range(100)))
        await stop(consumer)
    assert [{"n": n} for n in range(100)] == answers


async def test_a_failure_is_an_answer_too(opened: Open) -> None:
    async def fail(_: Payload, __: object = None) -> Payload:
        return {"error": "boom"}

    async with opened() as transport:
        consumer = await transport.consume("q", fail, listeners=1, buffer=1)
        assert {"error": "boom"} == await transport.request("q", {})
        await stop(consumer)


async def test_as_many_messages_are_worked_on_as_there_are_listeners(opened: Open) -> None:
    async with opened() as transport:
        now, most, done = 0, 0, 0

        async def work(_: Payload, __: object = None) -> Payload:
            nonlocal now, most, done
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.001)
            now -= 1
            done += 1
            return {}

        consumer = await transport.consume("q", work, listeners=3, buffer=50)
        for _ in range(30):
            await transport.dispatch("q", {})
        await until(lambda: done == 30)
        await stop(consumer)
    assert 3 == most


async def test_a_sender_waits_for_room_and_one_line_says_so(
    opened: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    async with opened(3) as transport:
        go = asyncio.Event()
        done = 0

        async def work(_: Payload, __: object = None) -> Payload:
            nonlocal done
            await go.wait()
            done += 1
            return {}

        # One is worked on and two wait.
        consumer = await transport.consume("q", work, listeners=1, buffer=2)
        sends = [asyncio.create_task(transport.dispatch("q", {})) for _ in range(5)]
        await until(lambda: 3 <= sum(task.done() for task in sends))
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert 3 == sum(task.done() for task in sends)
        go.set()
        await asyncio.gather(*sends)
        await until(lambda: done == 5)
        await stop(consumer)
    assert 1 == capsys.readouterr().err.count("senders wait: the buffer is full")


async def test_a_subscriber_without_room_does_not_cost_the_others_their_message(
    opened: Open,
) -> None:
    async with opened(2) as transport:
        heard: list[Payload] = []

        async def hang(_: Payload) -> None:
            await asyncio.Event().wait()

        slow = await transport.subscribe("t", hang, listeners=1, buffer=1)
        quick = await transport.subscribe("t", noting(heard), listeners=1, buffer=1)
        sends = [asyncio.create_task(transport.publish("t", {"n": n})) for n in range(3)]
        await until(lambda: 3 == len(heard) or 2 == sum(task.done() for task in sends))
        await until(lambda: len(heard) >= 2)
        await stop(slow)
        await asyncio.gather(*sends)
        await until(lambda: 3 == len(heard))
        await stop(quick)
    assert [0, 1, 2] == sorted(payload["n"] for payload in heard)


async def test_a_caller_that_gives_up_withdraws_what_nobody_has_begun(opened: Open) -> None:
    async with opened() as transport:
        begun: list[Payload] = []
        go = asyncio.Event()

        async def work(payload: Payload, __: object = None) -> Payload:
            begun.append(payload)
            await go.wait()
            return payload

        consumer = await transport.consume("q", work, listeners=1, buffer=5)
        first = asyncio.create_task(transport.request("q", {"n": 0}))
        await until(lambda: bool(begun))
        second = asyncio.create_task(transport.request("q", {"n": 1}))
        await asyncio.sleep(0.05)
        second.cancel()
        await asyncio.wait([second])
        go.set()
        assert {"n": 0} == await first
        assert {"n": 2} == await transport.request("q", {"n": 2})
        await stop(consumer)
    assert [{"n": 0}, {"n": 2}] == begun


async def test_idle_waits_for_what_is_worked_on(opened: Open) -> None:
    async with opened() as transport:
        go, begun = asyncio.Event(), asyncio.Event()

        async def work(payload: Payload, __: object = None) -> Payload:
            begun.set()
            await go.wait()
            return payload

        consumer = await transport.consume("q", work, listeners=1, buffer=5)
        await transport.dispatch("q", {})
        await begun.wait()
        transport.retire()
        idle = asyncio.create_task(transport.idle())
        await asyncio.sleep(0.01)
        assert not idle.done()
        go.set()
        await idle
        await stop(consumer)


async def test_what_is_cut_off_leaves_a_line(
    opened: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    async with opened() as transport:
        begun = asyncio.Event()

        async def work(payload: Payload, __: object = None) -> Payload:
            begun.set()
            return await forever(payload)

        consumer = await transport.consume("q", work, listeners=1, buffer=5)
        await transport.dispatch("q", {})
        await begun.wait()
        await stop(consumer)
        await transport.idle()
    assert 1 == capsys.readouterr().err.count("a message was cut off")


async def test_who_waits_for_an_answer_is_told_when_the_service_has_stopped(opened: Open) -> None:
    async with opened() as transport:
        begun = asyncio.Event()

        async def work(payload: Payload, __: object = None) -> Payload:
            begun.set()
            return await forever(payload)

        consumer = await transport.consume("q", work, listeners=1, buffer=5)
        asking = asyncio.create_task(transport.request("q", {}))
        await begun.wait()
        await stop(consumer)
        await transport.close()
        with pytest.raises(NobodyListens, match="stopped before"):
            await asking


def test_a_transport_is_used_in_one_event_loop_after_another(opened: Open) -> None:
    async def use() -> None:
        async with opened() as transport:
            for _ in range(2):
                consumer = await transport.consume("q", echo, listeners=1, buffer=1)
                assert {"n": 1} == await transport.request("q", {"n": 1})
                await stop(consumer)

    for _ in range(2):
        asyncio.run(use())


def test_the_persistent_store_decides_which_transport_a_service_has() -> None:
    def kind(url: str) -> type[Transport]:
        return type(transport_over(Storage("s", parse_storage_url(url), MemoryStore())))

    assert LocalTransport == kind("memory:") == kind("sqlite:state.db")
    assert SharedTransport == kind("redis://127.0.0.1:1/0")


async def test_an_offer_is_refused_where_there_is_no_room(opened: Open) -> None:
    async with opened(2) as transport:
        consumer = await transport.consume("q", forever, listeners=1, buffer=1)
        await transport.offer("q", {"n": 0})
        await until(lambda: 0 == sum(transport.waiting().values()))
        taken = [await transport.offer("q", {"n": n}) for n in range(1, 4)]
        await stop(consumer)
    assert [True, False, False] == taken


async def test_messages_of_one_order_wait_for_each_other_where_they_have_to(opened: Open) -> None:
    """Each begins at once; what they share they work on in the order in which they came."""
    begun: list[int] = []
    done: list[str] = []
    slow = asyncio.Event()

    async def work(payload: Payload, delivery: Delivery) -> Payload:
        begun.append(payload["n"])
        if payload["n"] == 0:
            await slow.wait()
        await delivery.turn()
        done.append(f"{payload['of']}{payload['n']}")
        return {}

    async with opened() as transport:
        consumer = await transport.consume("q", work, listeners=8, buffer=50)
        for number in range(4):
            await transport.offer("q", {"n": number, "of": "a"}, order="a")
        await transport.offer("q", {"n": 9, "of": "b"}, order="b")
        await transport.offer("q", {"n": 9, "of": ""})
        await until(lambda: 6 == len(begun) and 2 == len(done))
        assert {"b9", "9"} == set(done)
        slow.set()
        await transport.idle()
        await stop(consumer)
    assert ["a0", "a1", "a2", "a3"] == done[2:]
