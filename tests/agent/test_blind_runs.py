"""Agents whose memory cannot be read or written, and that answer all the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowrt.message import Outcome
from flowrt.observe.trace import Trace
from flowrt.service import Result
from flowrt.testing import FakeMessagesAPI, FakeReply, Gate
from tests.agent.remembering import AGENT, Kept, remembering, say
from tests.redis_server import PASSWORD, RedisServer
from tests.services import load, texts


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    (tmp_path / "redis").mkdir()
    server = RedisServer(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


def body(result: Result) -> Any:
    assert Outcome.COMPLETED == result.outcome, result.error
    assert result.message is not None
    return result.message.body


async def test_a_context_that_cannot_be_read_is_neither_shown_nor_touched(
    api: FakeMessagesAPI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.add("one", FakeReply(tool_calls=[{"name": "echo"}]), "two")
    lines: list[str] = []
    document = remembering(api.base_url)
    async with load(tmp_path, document, f"sqlite:{tmp_path}/s.db") as service:
        await service.invoke("chat", say("a"))
        space = service.storage.space("user")
        await space.append(f"agents/{AGENT}/t", [b"no JSON at all"])
        before = await space.read_log(f"agents/{AGENT}/t")
        result = await service.invoke("chat", say("b"), trace=Trace(lines.append, service.clock))
        after = await space.read_log(f"agents/{AGENT}/t")
        said = await Kept.of(service).said()
    assert "two" == body(result)
    assert ["b"] == texts(api.requests[1].messages[0])
    assert before == after
    assert [("user", "a"), ("assistant", "one")] == said
    assert "goes on without it" in capsys.readouterr().err
    assert "agent.memory-failed" in [json.loads(line)["kind"] for line in lines]


async def test_a_watcher_is_told_that_a_run_is_blind(api: FakeMessagesAPI, tmp_path: Path) -> None:
    api.add("one")
    (tmp_path / "s.db").write_bytes(b"this is no database, whatever it is called" * 200)

    class Watching:
        delta = None

        def __init__(self) -> None:
            self.events: list[dict[str, Any]] = []

        def event(self, event: dict[str, Any]) -> None:
            self.events.append(event)

    watcher = Watching()
    document = remembering(api.base_url, userMemory=True)
    async with load(tmp_path, document, f"sqlite:{tmp_path}/s.db") as service:
        result = await service.invoke("chat", say("hi"), watcher=watcher)
    assert "one" == body(result)
    first = watcher.events[0]
    assert ("signal", "blind") == (first["type"], first["signal"])
    assert "s.db" in first["text"]
    assert b"this is no database" == (tmp_path / "s.db").read_bytes()[:19]


async def test_a_redis_that_is_gone_costs_the_memory_and_not_the_answer(
    api: FakeMessagesAPI, tmp_path: Path, redis: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """FB-45."""
    api.add("one", "blind", "three")
    document = remembering(api.base_url, userMemory=True)
    async with load(tmp_path, document, redis.url) as service:
        await service.invoke("chat", say("a"))
        redis.stop()
        result = await service.invoke("chat", say("b"))
        redis.start()
        await service.invoke("chat", say("c"))
        said = await Kept.of(service).said()
    assert "blind" == body(result)
    assert [["b"]] == [texts(m) for m in api.requests[1].messages]
    assert [["a"], ["one"], ["c"]] == [texts(m) for m in api.requests[2].messages]
    assert ["a", "one", "c", "three"] == [text for _, text in said]
    assert PASSWORD not in capsys.readouterr().err


async def test_a_store_that_goes_away_during_a_run_does_not_take_the_answer_along(
    api: FakeMessagesAPI, tmp_path: Path, redis: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """FB-45."""
    gate = Gate()
    api.add(
        FakeReply(
            tool_calls=[{"name": "remember", "input": {"name": "a", "value": "b"}}], hold=gate
        ),
        "Delivered.",
        "After.",
    )
    document = remembering(api.base_url, userMemory=True)
    async with load(tmp_path, document, redis.url) as service:
        run = asyncio.ensure_future(service.invoke("chat", say("a")))
        await gate.reached()
        await asyncio.to_thread(redis.stop)
        gate.open()
        result = await run
        await asyncio.to_thread(redis.start)
        assert "After." == body(await service.invoke("chat", say("b")))
    assert "Delivered." == body(result)
    assert api.requests[1].messages[-1]["content"][0]["is_error"]
    assert "could not be saved" in capsys.readouterr().err
