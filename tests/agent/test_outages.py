"""Runs whose store goes away, or that are cancelled at an inconvenient moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowrt.message import Outcome
from flowrt.testing import FakeMessagesAPI, FakeReply, Gate
from tests.agent.conftest import Hold
from tests.redis_server import PASSWORD, RedisServer
from tests.services import agent, load, say, texts


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    (tmp_path / "redis").mkdir()
    server = RedisServer(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


def held_tool(document: dict[str, Any]) -> dict[str, Any]:
    tool = {"name": "slow", "description": "waits", "process": [{"type": "hold"}]}
    document["flows"][0]["process"][0]["tools"] = [tool]
    return document


async def test_a_store_that_is_gone_fails_the_run_before_the_model_is_called(
    api: FakeMessagesAPI, tmp_path: Path, redis: RedisServer
) -> None:
    """FB-45."""
    api.add("Fine.")
    redis.stop()
    async with load(tmp_path, agent(api.base_url), redis.url) as service:
        result = await service.invoke("chat", say("hi"))
        assert [] == api.requests
        text = str(result.error)
        assert f"127.0.0.1:{redis.port}" in text
        assert PASSWORD not in text
        redis.start()
        assert Outcome.COMPLETED == (await service.invoke("chat", say("hi"))).outcome


async def test_a_store_that_goes_away_before_the_save_does_not_take_the_answer_along(
    tmp_path: Path, redis: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """FB-45."""
    gate = Gate()
    with FakeMessagesAPI([FakeReply(text="Delivered.", hold=gate), "After."]) as api:
        async with load(tmp_path, agent(api.base_url), redis.url) as service:
            run = asyncio.ensure_future(service.invoke("chat", say("a")))
            await gate.reached()
            await asyncio.to_thread(redis.stop)
            gate.open()
            result = await run
            await asyncio.to_thread(redis.start)
            after = await service.invoke("chat", say("b", "another"))
    assert result.message is not None
    assert "Delivered." == result.message.body
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert any("could not be saved" in line["event"] for line in lines)
    assert Outcome.COMPLETED == after.outcome


async def test_a_run_that_is_cancelled_in_a_tool_leaves_a_thread_that_accepts_the_next_message(
    api: FakeMessagesAPI, tmp_path: Path, held: Hold
) -> None:
    """FB-06: the whole unfinished exchange is left out."""
    api.add(FakeReply(tool_calls=[{"name": "slow"}, {"name": "slow"}]), "Fine.")
    store = f"sqlite:{tmp_path}/s.db"
    async with load(tmp_path, held_tool(agent(api.base_url)), store) as service:
        run = asyncio.ensure_future(service.invoke("chat", say("a")))
        await held.reached.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        result = await service.invoke("chat", say("b"))
    assert Outcome.COMPLETED == result.outcome
    assert [["b"]] == [texts(m) for m in api.requests[-1].messages]


@pytest.mark.parametrize("store", ["sqlite", "redis"])
async def test_a_run_may_be_cancelled_at_any_step_and_never_leaves_half_an_exchange(
    api: FakeMessagesAPI, tmp_path: Path, redis_url: str, store: str
) -> None:
    """FB-42: in the model call, a tool, the save and the release."""
    api.reply = lambda body: (
        {"toolCalls": [{"name": "echo", "input": {"x": 1}}]}
        if body["messages"][-1]["content"][-1]["type"] == "text"
        else {"text": "Fine."}
    )
    url = f"sqlite:{tmp_path}/s.db" if store == "sqlite" else redis_url
    thread = f"cancelled-{store}"
    async with load(tmp_path, agent(api.base_url), url) as service:
        await service.invoke("chat", say("first", thread))
        for steps in range(0, 120, 3):
            run = asyncio.ensure_future(service.invoke("chat", say(f"cut {steps}", thread)))
            for _ in range(steps):
                await asyncio.sleep(0)
            run.cancel()
            await asyncio.wait({run})
        result = await asyncio.wait_for(service.invoke("chat", say("last", thread)), 20)
        log = await service.storage.space("user").read_log(f"agent-memory/{thread}")
    assert Outcome.COMPLETED == result.outcome
    assert log is not None
    assert 0 == len(log.entries) % 4
    assert [200] * len(api.requests) == [request.status or 200 for request in api.requests]


async def test_a_stop_keeps_what_happened_and_closes_the_open_calls(
    api: FakeMessagesAPI, tmp_path: Path, held: Hold
) -> None:
    api.add(FakeReply(tool_calls=[{"name": "slow", "id": "c1"}]), "Fine.")
    document = held_tool(agent(api.base_url, stopWhen='body.message == "stop"'))
    async with load(tmp_path, document) as service:
        run = asyncio.ensure_future(service.invoke("chat", say("work")))
        await held.reached.wait()
        await service.invoke("chat", say("stop"))
        held.opened.set()
        stopped = await run
        await service.invoke("chat", say("go on"))
    assert Outcome.STOPPED == stopped.outcome
    kinds = [[block["type"] for block in m["content"]] for m in api.requests[-1].messages]
    assert [["text"], ["tool_use"], ["tool_result", "text"]] == kinds
