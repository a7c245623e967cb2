"""The local transport where it ends: listeners that leave while others wait for them."""

from __future__ import annotations

import asyncio

import pytest

from flowrt.engine.local_transport import LocalTransport
from flowrt.engine.transport import NobodyListens, Payload, packed, unpacked
from flowrt.message import Message


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def forever(_: Payload) -> None:
    await asyncio.Event().wait()


async def forever_answering(_: Payload, __: object = None) -> Payload:
    await asyncio.Event().wait()
    return {}


async def test_a_subscriber_that_leaves_does_not_hold_up_the_others() -> None:
    transport, heard = LocalTransport(), list[Payload]()

    async def hear(payload: Payload) -> None:
        heard.append(payload)

    slow = await transport.subscribe("t", forever, listeners=1, buffer=1)
    quick = await transport.subscribe("t", hear, listeners=1, buffer=1)
    publishing = [asyncio.create_task(transport.publish("t", {"n": n})) for n in range(4)]
    await settled()
    assert 2 == len(heard)
    await slow.stop()
    await asyncio.gather(*publishing)
    await transport.idle()
    assert [0, 1, 2, 3] == sorted(payload["n"] for payload in heard)
    await quick.stop()
    with pytest.raises(NobodyListens):
        await transport.publish("t", {})


async def test_senders_that_wait_for_the_last_consumer_are_told_that_it_left() -> None:
    transport = LocalTransport()
    consumer = await transport.consume("q", forever_answering, listeners=1, buffer=1)
    waiting = [asyncio.create_task(transport.dispatch("q", {})) for _ in range(4)]
    waiting += [asyncio.create_task(transport.request("q", {})) for _ in range(3)]
    await settled()
    await consumer.stop()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [None, None] == results[:2]
    assert all(isinstance(result, NobodyListens) for result in results[2:])
    await transport.idle()


async def test_jobs_go_on_where_one_of_two_consumers_leaves() -> None:
    transport = LocalTransport()

    async def answer(payload: Payload, __: object = None) -> Payload:
        return payload

    first = await transport.consume("q", answer, listeners=1, buffer=1)
    second = await transport.consume("q", answer, listeners=1, buffer=1)
    await first.stop()
    assert {"n": 1} == await transport.request("q", {"n": 1})
    await second.stop()


async def test_a_queue_and_a_topic_of_one_subject_are_two_things() -> None:
    transport = LocalTransport()
    subscriber = await transport.subscribe("x", forever, listeners=1, buffer=1)
    with pytest.raises(NobodyListens, match="queue 'x'"):
        await transport.dispatch("x", {})
    await subscriber.stop()


def test_a_transport_can_be_used_in_one_event_loop_after_another() -> None:
    transport = LocalTransport()

    async def use() -> None:
        consumer = await transport.consume("q", forever_answering, listeners=1, buffer=1)
        await transport.dispatch("q", {})
        idle = asyncio.create_task(transport.idle())
        await settled()
        assert not idle.done()
        await consumer.stop()
        await idle

    for _ in range(2):
        asyncio.run(use())


def test_a_message_that_was_sent_shares_nothing_with_the_one_that_arrives() -> None:
    sent = Message({"a": [1]}, {"v": {"x": 1}}, correlation_id="c")
    sent.raw, sent.trace_id, sent.stop, sent.body_schema = True, "t", True, {"type": "object"}
    payload = packed(sent)
    sent.body["a"].append(2)
    first, second = unpacked(payload), unpacked(payload)
    first.body["a"].append(3)
    first.vars["v"]["x"] = 2
    assert ({"a": [1]}, {"v": {"x": 1}}) == (second.body, dict(second.vars))
    assert ("c", True, "t", False) == (
        second.correlation_id,
        second.raw,
        second.trace_id,
        second.stop,
    )
    assert {"type": "object"} == second.body_schema
    assert 3 == len({sent.event_id, first.event_id, second.event_id})
