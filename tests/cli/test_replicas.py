"""Replicas as an operator has them: processes of `flowrt run` on one Redis, some of them killed."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flowrt.engine.shared_transport import SharedTransport
from flowrt.engine.transport import Transport, packed
from flowrt.ids import new_id
from flowrt.message import Message
from flowrt.storage.memory import MemoryStore
from flowrt.storage.tiers import Storage, parse_storage_url
from flowrt.testing import FakeMessagesAPI, FakeReply
from flowrt.testing.replies import Gate
from tests.cli.conftest import Flowrt
from tests.cli.running import Running, write
from tests.services import agent, say
from tests.sources.serving import document, flow, listening

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


@asynccontextmanager
async def transport(url: str, service: str) -> AsyncIterator[Transport]:
    """What a process of the service sends with."""
    storage = Storage(service, parse_storage_url(url), MemoryStore())
    mail = storage.mail()
    assert mail is not None
    try:
        yield SharedTransport(mail)
    finally:
        await storage.close()


def job(body: Any) -> dict[str, Any]:
    return packed(Message(body))


def working(api: FakeMessagesAPI, name: str) -> dict[str, Any]:
    """An agent that works the queue `questions`."""
    content = agent(api.base_url)
    content["service"]["name"] = name
    content["flows"][0]["source"] = listening("queue", "questions")
    return content


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_message_of_a_replica_that_ends_is_answered_once_by_the_other(
    redis_url: str, tmp_path: Path, how: signal.Signals
) -> None:
    """Killed, it is taken over; stopped before it was done, it is given back at once."""
    gate, name = Gate(), f"test {new_id()}"
    with FakeMessagesAPI([FakeReply(text="Lost.", hold=gate), "Answered."]) as api:
        write(tmp_path, working(api, name))
        options = ("--storage", redis_url, "--grace", "100ms")
        async with transport(redis_url, name) as sender:
            with Running(tmp_path, *options) as first:
                first.serving()
                asking = asyncio.create_task(sender.request("questions", job(say("Well?"))))
                await gate.reached()
                with Running(tmp_path, *options) as second:
                    second.serving()
                    first.signal(how)
                    code = await asyncio.to_thread(first.ended)
                    assert (-how if how == signal.SIGKILL else 0) == code
                    async with asyncio.timeout(60):
                        answer = await asking
                    gate.open()
                    second.signal()
                    assert 0 == await asyncio.to_thread(second.ended)
        assert "Answered." == answer["message"]["body"]
        assert 2 == len(api.requests)
        # The question is there once, though it was begun twice.
        users = [m for m in api.requests[1].messages if m["role"] == "user"]
        assert 1 == json.dumps(users).count("Well?"), users
    told = [line["event"] for line in second.lines]
    assert ("messages of a replica that is gone are taken over" in told) is (how == signal.SIGKILL)


def test_jobs_that_fail_are_seen_tried_again_and_dropped(
    redis_url: str, tmp_path: Path, flowrt: Flowrt
) -> None:
    broken = {"type": "set-payload", "value": "body.missing.deeper"}
    send = {"type": "queue-dispatch", "subject": '"jobs"'}
    content = document(flow("send", send), flow("work", broken, source=listening("queue", "jobs")))
    content["service"]["name"] = f"test {new_id()}"
    write(tmp_path, content)
    where = ("--config", "service.yaml", "--storage", redis_url)
    # Sent while nobody works the queue.
    for number in range(2):
        sent = flowrt("invoke", *where, "--flow", "send", "--data", str(number))
        assert (0, "") == (sent.returncode, sent.stderr)
    with Running(tmp_path, "--storage", redis_url) as running:
        running.serving()
        for _ in range(2):
            running.until("a message is parked: its flow failed")
        listed = flowrt("queue", "ls", *where, "--json").stdout.splitlines()
        rows = [json.loads(line) for line in listed]
        assert [("queue 'jobs'", 1)] * 2 == [(row["where"], row["tries"]) for row in rows]
        assert {0, 1} == {row["message"]["body"] for row in rows}
        assert all("missing" in row["error"] for row in rows)
        ids = [row["id"] for row in rows]
        assert ids == [
            line.split("\t")[0] for line in flowrt("queue", "ls", *where).stdout.splitlines()
        ]
        assert f"{ids[0]}\n" == flowrt("queue", "retry", *where, ids[0]).stdout
        running.until("a message is parked: its flow failed")
        running.signal()
        assert 0 == running.ended()
    assert 2 == len(flowrt("queue", "drop", *where, "--all").stdout.splitlines())
    assert "" == flowrt("queue", "ls", *where).stdout
    gone = flowrt("queue", "retry", *where, ids[0])
    assert 2 == gone.returncode
    assert f"no message is parked as {ids[0]}" in gone.stderr


def test_which_parked_messages_are_meant_is_said(tmp_path: Path, flowrt: Flowrt) -> None:
    write(tmp_path, document(flow("main")))
    where = ("--config", "service.yaml", "--storage", "redis://127.0.0.1:1/0")
    for given in ((), ("1-0", "--all")):
        refused = flowrt("queue", "drop", *where, *given)
        assert 2 == refused.returncode
        assert "or --all" in refused.stderr


def test_a_store_that_carries_no_messages_is_named(tmp_path: Path, flowrt: Flowrt) -> None:
    write(tmp_path, document(flow("main")))
    refused = flowrt("queue", "ls", "--config", "service.yaml")
    assert 2 == refused.returncode
    assert "state.db carries no messages" in refused.stderr
