"""What broke for others who keep conversations, tried with and without `agentId` on every store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from flowrt.memory.forgetting import forget_user
from flowrt.message import Outcome
from flowrt.storage.agents.protocol import Person
from flowrt.testing import FakeMessagesAPI, FakeReply
from tests.agent.conftest import Hold
from tests.agent.remembering import AGENT, Kept, remembering, say
from tests.agent.test_user_memory import storage as storage
from tests.redis_server import RedisServer
from tests.services import agent, load, texts

both = pytest.mark.parametrize("with_id", [False, True], ids=["thread", "agentId"])


def chat(base_url: str, with_id: bool, **settings: Any) -> dict[str, Any]:
    """The chat with an `agentId` that has user memory, or without."""
    if with_id:
        return remembering(base_url, userMemory=True, **settings)
    return agent(base_url, **settings)


def call(tool: str, /, **arguments: Any) -> FakeReply:
    return FakeReply(tool_calls=[{"name": tool, "input": arguments}])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that has the keys of one test."""
    (tmp_path / "redis").mkdir()
    server = RedisServer(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


HELD_TOOL = {"name": "slow", "description": "waits", "process": [{"type": "hold"}]}


@both
@pytest.mark.parametrize("volatile", [False, True])
async def test_no_key_of_a_thread_outlives_or_expires_before_the_others(
    api: FakeMessagesAPI,
    tmp_path: Path,
    server: RedisServer,
    held: Hold,
    with_id: bool,
    volatile: bool,
) -> None:
    """FB-47: after a run, a cancelled one and another, all keys are kept for good but leases."""
    api.add("one", call("slow"), "three")
    document = chat(
        api.base_url,
        with_id,
        tools=[HELD_TOOL],
        memoryVolatile=volatile,
        history="record" if with_id else None,
    )
    environ = {"FLOWRT_VOLATILE": server.url}
    async with load(tmp_path, document, server.url, environ=environ) as service:
        await service.invoke("chat", say("a"))
        run = asyncio.ensure_future(service.invoke("chat", say("b")))
        await held.reached.wait()
        with redis.Redis.from_url(server.url) as client:
            leased = {key for key in client.scan_iter() if client.pttl(key) >= 0}
        run.cancel()
        await asyncio.wait({run})
        assert Outcome.COMPLETED == (await service.invoke("chat", say("c"))).outcome
    with redis.Redis.from_url(server.url) as client:
        lifetimes = {key: client.pttl(key) for key in client.scan_iter()}
    assert lifetimes
    assert {-1} == set(lifetimes.values())
    assert leased.isdisjoint(lifetimes)


@both
async def test_a_volatile_redis_may_drop_any_key_and_the_thread_goes_on(
    api: FakeMessagesAPI, tmp_path: Path, server: RedisServer, with_id: bool
) -> None:
    """FB-47: what is left of a thread is never half an exchange, and never stops the next run."""
    api.reply = lambda body: {"text": f"answer {len(body['messages'])}"}
    document = chat(
        api.base_url, with_id, memoryVolatile=True, history="record" if with_id else None
    )
    storage = f"sqlite:{tmp_path}/s.db"
    environ = {"FLOWRT_VOLATILE": server.url}
    at = count = 0
    async with load(tmp_path, document, storage, environ=environ) as service:
        while at <= count:
            thread = f"t{at}"
            for text in ("a", "b"):
                await service.invoke("chat", say(text, thread))
            with redis.Redis.from_url(server.url) as client:
                keys = sorted(client.scan_iter())
                count = len(keys) - 1
                client.delete(keys[at])
            result = await service.invoke("chat", say("c", thread))
            assert Outcome.COMPLETED == result.outcome, (keys[at], result.error)
            said = [texts(message)[-1] for message in api.requests[-1].messages]
            assert said in (["c"], ["a", "answer 1", "b", "answer 3", "c"]), keys[at]
            if with_id:
                turns = await Kept.of(service).turns(thread, volatile=True)
                assert "c" == turns[-2].text, keys[at]
                assert sorted({turn.seq for turn in turns}) == [turn.seq for turn in turns]
            with redis.Redis.from_url(server.url) as client:
                client.flushdb()
            at += 1
    assert count >= 1


@both
async def test_nul_and_half_a_character_are_replaced_in_whatever_is_kept(
    api: FakeMessagesAPI, tmp_path: Path, storage: str, with_id: bool
) -> None:
    """FB-50 and FB-51: in a question, an answer, a tool's result, a note and a title."""
    bad = "x\x00y\ud83dz"
    thread, user = f"bad-{tmp_path.name}", f"ann-{tmp_path.name}"
    replies: list[Any] = [call("echo", x=bad), FakeReply(text=f"said {bad}"), "fine"]
    if with_id:
        replies[1:1] = [
            call("remember", name=f"n{bad}", value=bad),
            call("search_memory", query=bad),
        ]
    api.add(*replies)
    naming = {"process": [{"type": "set-payload", "value": "body.question"}]}
    document = chat(api.base_url, with_id, **({"nameThread": naming} if with_id else {}))
    async with load(tmp_path, document, storage) as service:
        for text in (bad, "more"):
            result = await service.invoke("chat", say(text, thread, user))
            assert Outcome.COMPLETED == result.outcome, result.error
            assert result.message is not None
            assert "\x00" not in json.dumps(result.message.body)
        if with_id:
            kept = Kept.of(service)
            turns, facts = await kept.turns(thread), await kept.facts(user)
            info = await kept.thread(thread)
            assert ["x�y�z"] == [fact.value for fact in facts]
            assert "x�y�z" == turns[0].text
            assert "said x�y�z" == turns[1].text
            assert info is not None
            assert "x�y�z" == info.title
    last = json.dumps(api.requests[-1].body)
    assert "\\u0000" not in last
    assert "x\\ufffdy\\ufffdz" in last


async def test_small_talk_with_one_fact_leaves_one_fact_and_recall_does_not_feed_itself(
    api: FakeMessagesAPI, tmp_path: Path, storage: str
) -> None:
    """FB-62: what was recalled, looked up or prompted is not what anybody said."""
    user = f"ann-{tmp_path.name}"
    mark = f"kayak{tmp_path.name.replace('_', '')}"
    api.add(call("remember", name="sport", value=f"Has a {mark}."), "Noted.")
    for _ in range(19):
        api.add(call("search_memory", query=mark), "Nice.")
    document = remembering(api.base_url, userMemory=True, prompt=f"Sell every {mark}.")
    async with load(tmp_path, document, storage) as service:
        for number in range(20):
            text = f"I have a {mark}." if number == 0 else f"Hello {number}."
            await service.invoke("chat", say(text, f"{user}-{number % 4}", user))
        person = Person("test", AGENT, user)
        found = await service.memories.of().search(person, mark, limit=100, context={})
        facts = await Kept.of(service).facts(user)
        turns = [turn for at in range(4) for turn in await Kept.of(service).turns(f"{user}-{at}")]
    assert ["sport"] == [fact.name for fact in facts]
    assert 40 == len(turns)
    assert [f"I have a {mark}."] == [turn.text for turn in turns if mark in turn.text]
    assert [("fact", f"Has a {mark}."), ("turn", f"I have a {mark}.")] == sorted(
        (hit.kind, hit.text) for hit in found.hits if mark in hit.text
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "a", "value": None},
        {"name": "a", "value": ["x"]},
        {"name": "a", "value": {"text": "x"}},
        {"name": {"{braces}": 1}, "value": "x"},
        {"name": "\ud800", "value": ""},
        {"facts": None},
        {"name": "a", "value": True},
        {},
    ],
)
async def test_what_a_model_cannot_have_meant_as_a_note_is_told_to_it_and_kept_nowhere(
    api: FakeMessagesAPI, tmp_path: Path, arguments: dict[str, Any]
) -> None:
    """FB-65: notes come by a tool call, never from parsing text; a bad one costs nothing."""
    api.add(
        FakeReply(tool_calls=[{"name": "remember", "input": arguments}]),
        '```json\n{"facts": ["not parsed"]}\n```',
    )
    async with load(tmp_path, remembering(api.base_url, userMemory=True)) as service:
        result = await service.invoke("chat", say("hi"))
        facts = await Kept.of(service).facts()
    assert Outcome.COMPLETED == result.outcome
    assert [] == facts
    told = api.requests[-1].messages[-1]["content"][0]
    assert told["is_error"]
    assert "invalid arguments" in told["content"]


def everything(storage: str, folder: Path) -> bytes:
    """All that a store has: the bytes of its files, or every key and value."""
    if not storage.startswith("redis"):
        return b"".join(path.read_bytes() for path in sorted(folder.glob("s.db*")))
    with redis.Redis.from_url(storage) as client:
        return b"".join(key + client.dump(key) for key in client.scan_iter())


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_forget_me_forgets_the_summary_the_record_and_every_fact(
    api: FakeMessagesAPI, tmp_path: Path, server: RedisServer, kind: str
) -> None:
    """FB-70."""
    mark, words = "Zwetschge", "word " * 200
    storage = f"sqlite:{tmp_path}/s.db"
    if kind == "redis":
        storage = server.url
        # Values that are packed cannot be searched for text.
        with redis.Redis.from_url(storage) as client:
            client.config_set("rdbcompression", "no")

    def reply(body: dict[str, Any]) -> FakeReply:
        return FakeReply(text=f"{mark} summary" if not body.get("tools") else f"{mark} {words}")

    api.reply = reply
    document = remembering(
        api.base_url, userMemory=True, contextMaxTokens=1500, memoryCompaction="summarize"
    )
    async with load(tmp_path, document, storage) as service:
        kept = Kept.of(service)
        for number in range(25):
            await kept.put(f"{mark}-{number}", f"{mark} value")
            await kept.put(f"{mark}-{number}", f"{mark} changed")
        for number in range(8):
            await service.invoke("chat", say(f"{mark} {number} {words}"))
        await service.invoke("chat", say("Hi.", "other", "bob"))
        assert f"{mark} summary" in b"".join(await kept.working()).decode()
        assert mark.encode() in everything(storage, tmp_path)
        record, space = service.storage.agents(), service.storage.space("user")
        gone = await forget_user(record, space, "test", "ann")
        assert (1, 1, 16, 25) == (
            gone.contexts,
            gone.removed.threads,
            gone.removed.turns,
            gone.removed.facts,
        )
        # What the others said is what is left: the model's words to Bob have the mark too.
        await forget_user(record, space, "test", "bob")
        assert mark.encode() not in everything(storage, tmp_path)
        api.reply = None
        api.add("Who are you?")
        await service.invoke("chat", say("Do you know me?"))
    assert mark not in json.dumps(api.requests[-1].body)
