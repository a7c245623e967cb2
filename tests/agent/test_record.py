"""The record: what was said, word for word, beside the context that the model is shown."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flowrt.message import Outcome
from flowrt.storage.agents.protocol import Turn
from flowrt.testing import FakeMessagesAPI, FakeReply, Gate
from tests.agent.conftest import Hold
from tests.agent.remembering import Kept, remembering, say
from tests.services import load, texts
from tests.services import say as say_to_nobody

TOOL = FakeReply(tool_calls=[{"name": "echo", "input": {"x": "y" * 400}}])


@pytest.fixture(params=["memory", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/state.db"


def noted(turn: Turn) -> dict[str, Any]:
    """What the record notes of a turn, but for the requests."""
    return {name: value for name, value in turn.attrs.items() if name != "shown"}


async def test_an_agent_remembers_and_its_record_has_what_was_said(
    api: FakeMessagesAPI, tmp_path: Path, storage: str
) -> None:
    api.add("Hello Sam.", "Sam.")
    async with load(tmp_path, remembering(api.base_url), storage) as service:
        await service.invoke("chat", say("My name is Sam."))
        result = await service.invoke("chat", say("What is my name?"))
        turns = await Kept.of(service).turns()
        thread = await Kept.of(service).thread()
    assert result.message is not None
    assert "Sam." == result.message.body
    assert [["My name is Sam."], ["Hello Sam."], ["What is my name?"]] == [
        texts(m) for m in api.requests[1].messages
    ]
    assert [
        (1, "user", "My name is Sam."),
        (2, "assistant", "Hello Sam."),
        (3, "user", "What is my name?"),
        (4, "assistant", "Sam."),
    ] == [(turn.seq, turn.role, turn.text) for turn in turns]
    assert [{"iterations": 1}] * 4 == [noted(turn) for turn in turns]
    assert thread is not None
    assert ("ann", 4, "My name is Sam.") == (thread.user, thread.turns, thread.title)


async def test_the_record_stays_whole_where_the_context_is_cut(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-38."""
    api.add(*["word " * 400] * 8)
    document = remembering(api.base_url, contextMaxTokens=1500)
    async with load(tmp_path, document) as service:
        for number in range(8):
            await service.invoke("chat", say(f"message {number}"))
        kept = Kept.of(service)
        said, working = await kept.said(), await kept.working()
    assert [f"message {number}" for number in range(8)] == [
        text for role, text in said if role == "user"
    ]
    assert ["word " * 400] * 8 == [text for role, text in said if role == "assistant"]
    assert len(working) < 16


@pytest.mark.parametrize(
    ("replies", "settings", "reason", "iterations"),
    [
        ([FakeReply(text="no", stop_reason="refusal")], {}, "refused", 1),
        ([TOOL, TOOL], {"maxIterations": 2}, "max iterations", 2),
        (["  "], {}, "no text", 1),
    ],
)
async def test_a_question_without_an_answer_is_recorded_alone_and_marked(
    api: FakeMessagesAPI,
    tmp_path: Path,
    replies: list[Any],
    settings: dict[str, Any],
    reason: str,
    iterations: int,
) -> None:
    api.add(*replies)
    document = remembering(api.base_url, default={"process": []}, **settings)
    async with load(tmp_path, document) as service:
        await service.invoke("chat", say("why?"))
        turns = await Kept.of(service).turns()
    assert [("user", "why?")] == [(turn.role, turn.text) for turn in turns]
    assert {"iterations": iterations, "unanswered": True, "stopReason": reason} == noted(turns[0])


async def test_a_question_whose_model_call_fails_is_recorded_and_leaves_the_context_alone(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-54."""
    api.add(FakeReply(error=400), "Fine.")
    async with load(tmp_path, remembering(api.base_url)) as service:
        failed = await service.invoke("chat", say("why?"))
        await service.invoke("chat", say("again"))
        turns = await Kept.of(service).turns()
    assert Outcome.FAILED == failed.outcome
    assert [("user", "why?"), ("user", "again"), ("assistant", "Fine.")] == [
        (turn.role, turn.text) for turn in turns
    ]
    assert {"unanswered": True, "stopReason": "failed"} == noted(turns[0])
    assert [["again"]] == [texts(m) for m in api.requests[-1].messages]


async def test_a_run_that_is_cancelled_leaves_its_question_on_the_record(
    api: FakeMessagesAPI, tmp_path: Path, held: Hold, storage: str
) -> None:
    """FB-54 and FB-42: who asks next does not wait for it."""
    api.add(FakeReply(tool_calls=[{"name": "slow"}]), "Fine.")
    tool = {"name": "slow", "description": "waits", "process": [{"type": "hold"}]}
    async with load(tmp_path, remembering(api.base_url, tools=[tool]), storage) as service:
        run = asyncio.ensure_future(service.invoke("chat", say("a")))
        await held.reached.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await service.invoke("chat", say("b"))
        turns = await Kept.of(service).turns()
    assert ["a", "b", "Fine."] == [turn.text for turn in turns]
    assert {"unanswered": True, "stopReason": "cancelled"} == noted(turns[0])


async def test_a_stopped_run_is_recorded_with_the_reason_and_without_an_answer(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    gate = Gate()
    api.add(FakeReply(text="never", hold=gate))
    document = remembering(api.base_url, stopWhen='body.message == "stop"')
    async with load(tmp_path, document) as service:
        run = asyncio.ensure_future(service.invoke("chat", say("work")))
        await gate.reached()
        await service.invoke("chat", say("stop"))
        gate.open()
        await run
        turns = await Kept.of(service).turns()
    assert [("user", "work")] == [(turn.role, turn.text) for turn in turns]
    assert "stopped by a message" == turns[0].attrs["stopReason"]


async def test_messages_that_join_a_live_run_are_recorded_too(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    gate = Gate()
    api.add(FakeReply(text="one moment", hold=gate), "Both done.")
    async with load(tmp_path, remembering(api.base_url, threadPolicy="merge")) as service:
        run = asyncio.ensure_future(service.invoke("chat", say("first")))
        await gate.reached()
        await service.invoke("chat", say("and second"))
        gate.open()
        await run
        said = await Kept.of(service).said()
    assert [("user", "first"), ("user", "and second"), ("assistant", "Both done.")] == said


async def test_a_record_without_a_user_belongs_to_nobody_until_one_is_named(
    api: FakeMessagesAPI, tmp_path: Path, storage: str
) -> None:
    api.add(*["ok"] * 4)
    async with load(tmp_path, remembering(api.base_url), storage) as service:
        kept = Kept.of(service)
        await service.invoke("chat", say("a", user=None))
        assert "" == (await kept.turns())[0].user
        await service.invoke("chat", say("b", user="ann"))
        await service.invoke("chat", say("c", user="bob"))
        owners = {turn.user for turn in await kept.turns()}
        await service.invoke("chat", say_to_nobody("hi", "another"))
        another = await kept.thread("another")
    assert {"ann"} == owners
    assert another is not None
    assert "" == another.user


async def test_without_history_nothing_is_recorded_and_the_context_is_kept(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add("one", "two")
    async with load(tmp_path, remembering(api.base_url, history="off")) as service:
        await service.invoke("chat", say("a"))
        await service.invoke("chat", say("b"))
        kept = Kept.of(service)
        thread = await kept.thread()
        assert [] == await kept.turns()
        assert 4 == len(await kept.working())
    assert [["a"], ["one"], ["b"]] == [texts(m) for m in api.requests[1].messages]
    assert thread is not None
    assert ("ann", "", 0) == (thread.user, thread.title, thread.turns)


async def test_a_volatile_agent_records_only_where_it_is_told_to(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add("one", "two")
    for history, turns in ((None, 0), ("record", 2)):
        document = remembering(api.base_url, memoryVolatile=True, history=history)
        async with load(tmp_path, document) as service:
            await service.invoke("chat", say("a"))
            kept = Kept.of(service)
            assert turns == len(await kept.turns(volatile=True))
            assert 2 == len(await kept.working(volatile=True))
            assert [] == await kept.turns()
            assert [] == await kept.working()


async def test_clearing_an_agent_takes_context_record_and_thread_and_leaves_the_notes(
    api: FakeMessagesAPI, tmp_path: Path, storage: str
) -> None:
    api.add("one", "two")
    async with load(tmp_path, remembering(api.base_url), storage) as service:
        kept = Kept.of(service)
        await kept.put("city", "Berlin")
        await service.invoke("chat", say("a"))
        await service.invoke("chat", say("b", "another"))
        await service.invoke("forget", say(""))
        assert Outcome.COMPLETED == (await service.invoke("forget", say("again"))).outcome
        assert ([], [], None) == (await kept.turns(), await kept.working(), await kept.thread())
        assert 2 == len(await kept.turns("another"))
        assert ["city"] == [fact.name for fact in await kept.facts()]


async def test_what_was_said_before_the_agent_had_an_id_is_carried_over_once(
    api: FakeMessagesAPI, tmp_path: Path, storage: str
) -> None:
    api.add("one", "two", "three")
    url = storage if storage != "memory:" else f"sqlite:{tmp_path}/old.db"
    document = remembering(api.base_url, agentId=None, userId=None)
    async with load(tmp_path, document, url) as service:
        await service.invoke("chat", say("old"))
    async with load(tmp_path, remembering(api.base_url), url) as service:
        await service.invoke("chat", say("new"))
        log = await service.storage.space("user").read_log("agent-memory/t")
        await service.invoke("chat", say("newer"))
        said = await Kept.of(service).said()
    assert log is None
    assert [["old"], ["one"], ["new"]] == [texts(m) for m in api.requests[1].messages]
    assert [["old"], ["one"], ["new"], ["two"], ["newer"]] == [
        texts(m) for m in api.requests[2].messages
    ]
    assert [("user", "new"), ("assistant", "two")] == said[:2]


@pytest.mark.parametrize("other", ["T", "t ", "t%", "t/", "x/t", "agents/helper/t", "t\u0301"])
async def test_threads_that_look_alike_are_not_one(
    api: FakeMessagesAPI, tmp_path: Path, other: str, storage: str
) -> None:
    """FB-56."""
    api.add("one", "two")
    async with load(tmp_path, remembering(api.base_url), storage) as service:
        await service.invoke("chat", say("a", "t"))
        await service.invoke("chat", say("b", other))
        said = await Kept.of(service).said(other)
    assert [["b"]] == [texts(m) for m in api.requests[1].messages]
    assert [("user", "b"), ("assistant", "two")] == said


async def test_two_agents_on_one_thread_share_nothing(api: FakeMessagesAPI, tmp_path: Path) -> None:
    """FB-56."""
    api.add("one", "two")
    storage = f"sqlite:{tmp_path}/s.db"
    for name in ("helper", "helper/t"):
        async with load(tmp_path, remembering(api.base_url, agentId=name), storage) as service:
            await service.invoke("chat", say("hi"))
    assert 1 == len(api.requests[1].messages)
