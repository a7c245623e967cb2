"""What only a transport between processes does: keep, take over, park, put back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from flowrt.engine.shared_transport import SharedTransport
from flowrt.engine.transport import NobodyListens, Payload
from flowrt.ids import new_id
from flowrt.storage.mail.protocol import Mail, Terms
from flowrt.storage.memory import MemoryStore
from flowrt.storage.tiers import Storage, parse_storage_url
from tests.engine.test_transports import echo, forever, noting, stop, until
from tests.redis_server import RedisServer


class Replica(NamedTuple):
    """One of several processes, as far as a transport sees."""

    transport: SharedTransport
    mail: Mail


@asynccontextmanager
async def replica(
    url: str, service: str, *, stale: float = 0.2, tries: int = 3, places: int = 100
) -> AsyncIterator[Replica]:
    storage = Storage(service, parse_storage_url(url), MemoryStore())
    mail = storage.mail()
    assert mail is not None
    terms = Terms(stale=stale, tries=tries, places=places, parked=3)
    try:
        yield Replica(SharedTransport(mail, terms), mail)
    finally:
        await storage.close()


@pytest.fixture
def service() -> str:
    """A service of its own for each test."""
    return f"test/{{{new_id()}}}"


async def taken_and_left(one: Replica, box: str) -> None:
    """A reader that takes a message and is never seen again."""
    await one.mail.open_box(box)
    assert await one.mail.read(box, f"gone {new_id()}", count=1, wait=1)


async def test_what_nobody_works_now_waits_for_who_will(redis_url: str, service: str) -> None:
    async with replica(redis_url, service) as one, replica(redis_url, service) as two:
        asking = asyncio.create_task(one.transport.request("q", {"n": 1}))
        await one.transport.dispatch("q", {"n": 2})
        heard: list[Payload] = []

        async def work(payload: Payload, __: object = None) -> Payload:
            heard.append(payload)
            return payload

        consumer = await two.transport.consume("q", work, listeners=1, buffer=1)
        assert {"n": 1} == await asking
        await until(lambda: 2 == len(heard))
        await stop(consumer)


async def test_two_replicas_share_a_queue_and_each_hears_a_topic(
    redis_url: str, service: str
) -> None:
    async with replica(redis_url, service) as one, replica(redis_url, service) as two:
        worked: list[Payload] = []
        heard: list[list[Payload]] = [[], []]
        shared: list[Payload] = []

        async def work(payload: Payload, __: object = None) -> Payload:
            worked.append(payload)
            return {}

        subscriptions = []
        for number, each in enumerate((one, two)):
            open_ = each.transport
            subscriptions += [
                await open_.consume("x", work, listeners=2, buffer=1),
                await open_.subscribe("x", noting(heard[number]), listeners=2, buffer=1),
                await open_.subscribe("x", noting(shared), listeners=2, buffer=1, shared="flow"),
            ]
        for number in range(20):
            await one.transport.dispatch("x", {"n": number})
            await two.transport.publish("x", {"n": number})
        await until(lambda: [20] * 4 == [len(worked), *map(len, heard), len(shared)])
        await stop(*subscriptions)


async def test_what_is_published_waits_for_a_shared_subscription_while_no_replica_runs(
    redis_url: str, service: str
) -> None:
    heard: list[Payload] = []
    async with replica(redis_url, service) as one:
        listening = {"listeners": 1, "buffer": 1, "shared": "flow"}
        await stop(await one.transport.subscribe("t", noting(heard), **listening))  # type: ignore[arg-type]
        await one.transport.publish("t", {"n": 1})
        subscription = await one.transport.subscribe("t", noting(heard), **listening)  # type: ignore[arg-type]
        await until(lambda: [{"n": 1}] == heard)
        await stop(subscription)


async def test_a_message_of_a_reader_that_is_gone_is_answered_by_another(
    redis_url: str, service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with replica(redis_url, service) as one:
        asking = asyncio.create_task(one.transport.request("q", {"n": 1}))
        await taken_and_left(one, "queue q")
        consumer = await one.transport.consume("q", echo, listeners=1, buffer=1)
        assert {"n": 1} == await asking
        await stop(consumer)
    assert "messages of a replica that is gone are taken over" in capsys.readouterr().err


async def test_a_message_that_takes_long_stays_with_who_works_it(
    redis_url: str, service: str
) -> None:
    async with replica(redis_url, service) as one, replica(redis_url, service) as two:
        begun = 0

        async def slow(payload: Payload, __: object = None) -> Payload:
            nonlocal begun
            begun += 1
            await asyncio.sleep(1)  # five times what makes a message stale
            return payload

        consumers = [
            await each.transport.consume("q", slow, listeners=2, buffer=1) for each in (one, two)
        ]
        assert {"n": 1} == await one.transport.request("q", {"n": 1})
        assert 1 == begun
        await stop(*consumers)


async def test_a_run_whose_message_another_replica_has_is_cut_off(
    redis_url: str, service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that was held up for longer than a message may lie still."""
    async with replica(redis_url, service) as one:
        consumer = await one.transport.consume("q", forever, listeners=1, buffer=1)
        await one.transport.dispatch("q", {})
        async with asyncio.timeout(10):
            while not (taken := await one.mail.take_over(
                "queue q", "other", count=1, terms=Terms(stale=0.001)
            )).deliveries:  # fmt: skip
                await asyncio.sleep(0.001)
        await one.transport.idle()
        assert 1 == len(taken.deliveries)
        await stop(consumer)
    assert "a message was taken over; this run of it is cut off" in capsys.readouterr().err


async def test_a_message_that_ends_its_readers_is_parked_and_its_sender_told(
    redis_url: str, service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with replica(redis_url, service, stale=0.02, tries=2) as one:
        asking = asyncio.create_task(one.transport.request("q", {"n": 1}))
        await taken_and_left(one, "queue q")
        terms = Terms(stale=0.02, tries=2)
        async with asyncio.timeout(10):
            while not (await one.mail.take_over("queue q", "gone", count=1, terms=terms))[0]:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        consumer = await one.transport.consume("q", echo, listeners=1, buffer=1)
        answer = await asking
        assert "ended 2 times" in answer["error"]
        (parked,) = await one.mail.parked()
        assert ("queue q", 1, 2) == (parked.box, json.loads(parked.data)["n"], parked.tries)
        await stop(consumer)
    assert "a message is parked: it was tried too often" in capsys.readouterr().err


async def test_a_job_that_fails_with_nobody_waiting_is_parked_and_can_be_tried_again(
    redis_url: str, service: str
) -> None:
    async with replica(redis_url, service) as one:
        failing, done = True, 0

        async def work(_: Payload, __: object = None) -> Payload:
            nonlocal done
            done += 1
            return {"error": "boom"} if failing else {}

        consumer = await one.transport.consume("q", work, listeners=1, buffer=1)
        await one.transport.dispatch("q", {"n": 1})
        await until(lambda: 1 == done)
        await one.transport.idle()
        (parked,) = await one.mail.parked()
        assert ("boom", 1) == (parked.error, parked.tries)
        failing = False
        assert await one.mail.retry(parked.id)
        assert not await one.mail.retry(parked.id)
        await until(lambda: 2 == done)
        await one.transport.idle()
        assert [] == await one.mail.parked()
        await stop(consumer)


async def test_the_oldest_parked_message_goes_with_a_line_when_there_are_too_many(
    redis_url: str, service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with replica(redis_url, service) as one:
        done = 0

        async def fail(_: Payload, __: object = None) -> Payload:
            nonlocal done
            done += 1
            return {"error": "boom"}

        consumer = await one.transport.consume("q", fail, listeners=1, buffer=1)
        for number in range(5):
            await one.transport.dispatch("q", {"n": number})
        await until(lambda: 5 == done)
        await one.transport.idle()
        assert [2, 3, 4] == [json.loads(parked.data)["n"] for parked in await one.mail.parked()]
        assert await one.mail.drop((await one.mail.parked())[0].id)
        assert 2 == len(await one.mail.parked())
        await stop(consumer)
    assert 2 == capsys.readouterr().err.count("the oldest parked message was lost")


async def test_what_is_cut_off_by_a_stop_is_answered_by_another_replica_at_once(
    redis_url: str, service: str
) -> None:
    async with (
        replica(redis_url, service, stale=600) as one,
        replica(redis_url, service, stale=600) as two,
    ):
        begun = asyncio.Event()

        async def work(payload: Payload, __: object = None) -> Payload:
            begun.set()
            return await forever(payload)

        first = await one.transport.consume("q", work, listeners=1, buffer=1)
        asking = asyncio.create_task(two.transport.request("q", {"n": 1}))
        await begun.wait()
        await stop(first)
        second = await two.transport.consume("q", echo, listeners=1, buffer=1)
        assert {"n": 1} == await asking
        await stop(second)


async def test_a_service_that_stops_takes_only_what_its_own_flows_wait_for(
    redis_url: str, service: str
) -> None:
    async with replica(redis_url, service) as one, replica(redis_url, service) as two:
        consumer = await one.transport.consume("q", echo, listeners=1, buffer=1)
        one.transport.retire()
        # A read that was under way when it retired may bring one message more.
        await two.transport.dispatch("q", {})
        await asyncio.sleep(0.2)
        asking = asyncio.create_task(two.transport.request("q", {"n": 1}))
        await asyncio.sleep(0.2)
        assert not asking.done()
        assert {"n": 2} == await one.transport.request("q", {"n": 2})
        assert {"n": 1} == await asking
        await stop(consumer)


async def test_a_subscription_of_a_process_that_is_gone_is_given_up_with_a_line(
    redis_url: str, service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with replica(redis_url, service) as one:
        await one.mail.subscribe("t", "one/gone", 0.2)
        await one.transport.publish("t", {})
        await asyncio.sleep(0.3)
        with pytest.raises(NobodyListens):
            await one.transport.publish("t", {})
    assert "messages were lost: their subscriber is gone" in capsys.readouterr().err


async def test_redis_goes_away_under_load_and_nothing_is_lost(
    tmp_path: Path, service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = RedisServer(tmp_path, appendfsync="always")
    server.start()
    try:
        async with replica(server.url, service, stale=2) as one:
            done: set[int] = set()
            go = asyncio.Event()

            async def work(payload: Payload, __: object = None) -> Payload:
                await go.wait()
                done.add(payload["n"])
                return {}

            consumer = await one.transport.consume("q", work, listeners=3, buffer=1)
            for number in range(20):
                await one.transport.dispatch("q", {"n": number})
            await asyncio.to_thread(server.stop)
            go.set()
            await until(lambda: 3 <= len(done))
            await asyncio.to_thread(server.start)
            await until(lambda: set(range(20)) == done)
            await one.transport.idle()
            await stop(consumer)
    finally:
        server.stop()
    err = capsys.readouterr().err
    assert 1 == err.count("a message that is done is not acknowledged")
    assert "the store works again" in err


async def test_what_only_a_process_that_stops_would_hear_is_heard_first(
    redis_url: str, service: str
) -> None:
    async with replica(redis_url, service) as one:
        heard: list[Payload] = []

        async def hear(payload: Payload) -> None:
            await asyncio.sleep(0.005)
            heard.append(payload)

        subscription = await one.transport.subscribe("t", hear, listeners=1, buffer=1)
        for number in range(10):
            await one.transport.publish("t", {"n": number})
        one.transport.retire()
        await one.transport.idle()
        await stop(subscription)
    assert [{"n": number} for number in range(10)] == heard


async def test_a_run_that_outlives_an_outage_is_not_begun_again(
    tmp_path: Path, service: str
) -> None:
    server = RedisServer(tmp_path, appendfsync="always")
    server.start()
    try:
        async with (
            replica(server.url, service, stale=1.5) as one,
            replica(server.url, service, stale=1.5) as two,
        ):
            begun, go = 0, asyncio.Event()

            async def work(_: Payload, __: object = None) -> Payload:
                nonlocal begun
                begun += 1
                await go.wait()
                return {}

            consumers = [
                await each.transport.consume("q", work, listeners=2, buffer=1)
                for each in (one, two)
            ]
            await one.transport.dispatch("q", {})
            await until(lambda: begun == 1)
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(2)
            await asyncio.to_thread(server.start)
            await asyncio.sleep(2)
            go.set()
            for each in (one, two):
                await each.transport.idle()
            assert 1 == begun
            assert 0 == await one.mail.length("queue q")
            await stop(*consumers)
    finally:
        server.stop()


async def test_what_leaves_the_service_is_heard_by_who_listens_right_then(
    redis_url: str, service: str
) -> None:
    async with replica(redis_url, service) as one, replica(redis_url, service) as two:
        heard: list[bytes] = []
        ready = asyncio.Event()
        listening = asyncio.create_task(two.mail.listen(["system:x"], ready.set, heard.append))
        await ready.wait()
        await one.transport.publish("system:x", {"n": 1})
        await until(lambda: bool(heard))
        listening.cancel()
        await asyncio.wait([listening])
    assert [b'{"n":1}'] == heard
