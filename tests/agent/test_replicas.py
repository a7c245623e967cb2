"""Messages that arrive at one replica and are for the run of another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flowrt.ids import new_id
from flowrt.message import Outcome
from flowrt.service import Service
from flowrt.testing import FakeMessagesAPI, FakeReply
from flowrt.testing.replies import Gate
from tests.agent.test_gates import Person, answer, call, gated, results, start
from tests.redis_server import RedisServer
from tests.services import agent, load, say, texts


@asynccontextmanager
async def replicas(
    folder: Path, document: dict[str, Any], url: str
) -> AsyncIterator[tuple[Service, Service]]:
    """Two services of one name on one Redis."""
    document["service"]["name"] = f"test {new_id()}"
    async with load(folder, document, url) as one, load(folder, document, url) as two:
        yield one, two


async def test_a_stop_reaches_the_run_of_another_replica(redis_url: str, tmp_path: Path) -> None:
    gate = Gate()
    with FakeMessagesAPI([FakeReply(text="Never heard.", hold=gate)]) as api:
        document = agent(api.base_url, stopWhen='body.message == "stop"')
        async with replicas(tmp_path, document, redis_url) as (one, two):
            running = asyncio.create_task(one.invoke("chat", say("work")))
            await gate.reached()
            # Another thread's stop is not this one's.
            assert Outcome.STOPPED == (await two.invoke("chat", say("stop", "other"))).outcome
            assert not running.done()
            assert Outcome.STOPPED == (await two.invoke("chat", say("stop"))).outcome
            assert Outcome.STOPPED == (await running).outcome
            gate.open()


async def test_a_stop_also_reaches_who_waits_for_the_run_of_another_replica(
    redis_url: str, tmp_path: Path
) -> None:
    gate = Gate()
    with FakeMessagesAPI([FakeReply(text="Never heard.", hold=gate)]) as api:
        document = agent(api.base_url, stopWhen='body.message == "stop"')
        async with replicas(tmp_path, document, redis_url) as (one, two):
            running = asyncio.create_task(one.invoke("chat", say("work")))
            await gate.reached()
            waiting = asyncio.create_task(two.invoke("chat", say("more")))
            await asyncio.sleep(0.05)
            await two.invoke("chat", say("stop"))
            assert Outcome.STOPPED == (await running).outcome
            assert Outcome.STOPPED == (await waiting).outcome
            gate.open()
        assert 1 == len(api.requests)


async def test_messages_join_the_run_of_another_replica_where_the_policy_says_merge(
    redis_url: str, tmp_path: Path
) -> None:
    gate = Gate()
    with FakeMessagesAPI([FakeReply(text="One.", hold=gate), "All."]) as api:
        document = agent(api.base_url, threadPolicy="merge")
        async with replicas(tmp_path, document, redis_url) as (one, two):
            running = asyncio.create_task(one.invoke("chat", say("a")))
            await gate.reached()
            others = await asyncio.gather(*(two.invoke("chat", say(text)) for text in "bcd"))
            gate.open()
            result = await running
        assert [(Outcome.STOPPED, {})] * 3 == [
            (each.outcome, each.message and each.message.body) for each in others
        ]
        assert result.message is not None
        assert "All." == result.message.body
        said = [text for m in api.requests[1].messages for text in texts(m)]
        assert ["a", "One.", "b", "c", "d"] == [*said[:2], *sorted(said[2:])]
        assert 2 == len(api.requests)


async def test_a_message_that_no_run_takes_any_more_is_the_next_turn(
    redis_url: str, tmp_path: Path
) -> None:
    """Two blocks on one conversation: the run of the one takes nothing for the other."""
    gate = Gate()
    with FakeMessagesAPI([FakeReply(text="One.", hold=gate), "Two."]) as api:
        document = agent(api.base_url, threadPolicy="merge")
        (block,) = document["flows"][0]["process"]
        document["flows"].append({"name": "other", "process": [{**block, "name": "second"}]})
        async with replicas(tmp_path, document, redis_url) as (one, two):
            running = asyncio.create_task(one.invoke("chat", say("a")))
            await gate.reached()
            waiting = asyncio.create_task(two.invoke("other", say("b")))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            gate.open()
            assert Outcome.COMPLETED == (await running).outcome
            assert Outcome.COMPLETED == (await waiting).outcome
        assert [["a"], ["One."], ["b"]] == [texts(m) for m in api.requests[1].messages]


@pytest.mark.parametrize(("allow", "told"), [(True, ('"paid"', False)), (False, None)])
async def test_an_answer_reaches_the_gate_of_another_replica(
    redis_url: str, tmp_path: Path, allow: bool, told: Any
) -> None:
    with FakeMessagesAPI([FakeReply(tool_calls=[call(1)]), "Done."]) as api:
        person = Person()
        async with replicas(tmp_path, gated(api), redis_url) as (one, two):
            running = start(one, person)
            asked = await person.asked.get()
            assert Outcome.STOPPED == (await answer(two, asked, allow)).outcome
            assert Outcome.COMPLETED == (await running).outcome
        assert told is None or [told] == results(api)
        assert [allow] == [event["allowed"] for event in person.of("signal")]


async def test_replicas_hear_each_other_again_after_redis_was_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = RedisServer(tmp_path)
    server.start()
    gate = Gate()
    try:
        with FakeMessagesAPI(["Hello.", FakeReply(text="Never heard.", hold=gate)]) as api:
            document = agent(api.base_url, stopWhen='body.message == "stop"')
            async with replicas(tmp_path, document, server.url) as (one, two):
                await one.invoke("chat", say("hello"))
                await asyncio.to_thread(server.stop)
                # Nobody can be asked; that is no failure of the message.
                assert Outcome.STOPPED == (await two.invoke("chat", say("stop"))).outcome
                await asyncio.to_thread(server.start)
                running = asyncio.create_task(one.invoke("chat", say("work")))
                await gate.reached()
                async with asyncio.timeout(20):
                    while not running.done():
                        await two.invoke("chat", say("stop"))
                        await asyncio.sleep(0.05)
                assert Outcome.STOPPED == (await running).outcome
                gate.open()
    finally:
        server.stop()
    assert "the other replicas were not asked" in capsys.readouterr().err
