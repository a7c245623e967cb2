"""Conversations: what the second turn is shown of the first, and what can go wrong between."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ThreadBusy
from flowrt.message import Outcome
from flowrt.storage.tiers import Space
from flowrt.testing import FakeMessagesAPI
from flowrt.testing.replies import FakeReply, Gate
from tests.agent.conftest import Hold
from tests.services import agent, load, say, texts


def call(name: str, call_id: str = "", **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments, "id": call_id}


def tool(name: str, *chain: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": name, "process": list(chain)}


@pytest.fixture(params=["sqlite", "redis"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/state.db"
    url: str = request.getfixturevalue("redis_url")
    return url


async def test_the_second_turn_remembers_the_first_in_another_process(
    api: FakeMessagesAPI, tmp_path: Path, storage: str
) -> None:
    api.add("Hello Sam.", "Sam.")
    for text in ("My name is Sam.", "What is my name?"):
        async with load(tmp_path, agent(api.base_url), storage) as service:
            result = await service.invoke("chat", say(text, "first"))
    assert result.message is not None
    assert "Sam." == result.message.body
    said = [(m["role"], texts(m)) for m in api.requests[1].messages]
    assert [
        ("user", ["My name is Sam."]),
        ("assistant", ["Hello Sam."]),
        ("user", ["What is my name?"]),
    ] == said


async def test_a_cleared_thread_starts_anew(api: FakeMessagesAPI, tmp_path: Path) -> None:
    api.add("One.", "Two.")
    async with load(tmp_path, agent(api.base_url)) as service:
        await service.invoke("chat", say("a"))
        await service.invoke("forget", say(""))
        cleared_twice = await service.invoke("forget", say("kept"))
        await service.invoke("chat", say("b"))
    assert Outcome.COMPLETED == cleared_twice.outcome
    assert cleared_twice.message is not None
    assert say("kept") == cleared_twice.message.body
    assert [["b"]] == [texts(m) for m in api.requests[1].messages]


async def test_two_services_on_one_store_do_not_share_a_thread(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add("One.", "Two.")
    for name in ("a", "a/user"):
        document = agent(api.base_url)
        document["service"]["name"] = name
        async with load(tmp_path, document, f"sqlite:{tmp_path}/state.db") as service:
            await service.invoke("chat", say("hi"))
    assert 1 == len(api.requests[1].messages)


@pytest.mark.parametrize("thread", [None, "", "   ", ["x"], {"a": 1}])
async def test_a_thread_id_that_names_nobody_is_an_error(
    api: FakeMessagesAPI, tmp_path: Path, thread: Any
) -> None:
    """FB-56."""
    async with load(tmp_path, agent(api.base_url)) as service:
        result = await service.invoke("chat", {"thread": thread, "message": "hi"})
    assert "ai-agent memory threadId" in str(result.error)
    assert [] == api.requests


async def test_a_missing_thread_id_names_the_key(api: FakeMessagesAPI, tmp_path: Path) -> None:
    async with load(tmp_path, agent(api.base_url)) as service:
        result = await service.invoke("chat", {"message": "hi"})
    assert "no such key: thread" in str(result.error)


async def test_volatile_memory_is_kept_apart_and_cleared_too(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add("One.", "Two.", "Three.")
    database = tmp_path / "state.db"
    async with load(
        tmp_path, agent(api.base_url, memoryVolatile=True), f"sqlite:{database}"
    ) as service:
        await service.invoke("chat", say("a"))
        await service.invoke("chat", say("b"))
        assert not database.exists()
        await service.invoke("forget", say(""))
        await service.invoke("chat", say("c"))
    assert [1, 3, 1] == [len(request.messages) for request in api.requests]


async def test_an_agent_without_a_thread_remembers_nothing(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add("One.", "Two.")
    async with load(tmp_path, agent(api.base_url, memoryThreadId=None)) as service:
        await service.invoke("chat", say("a"))
        await service.invoke("chat", say("b"))
    assert 1 == len(api.requests[1].messages)


async def test_messages_at_once_on_one_thread_are_worked_one_after_the_other(
    api: FakeMessagesAPI, tmp_path: Path, storage: str
) -> None:
    """FB-40: they queue."""
    api.reply = lambda body: f"answer to {texts(body['messages'][-1])[-1]}"
    async with load(tmp_path, agent(api.base_url), storage) as service:
        results = await asyncio.gather(
            *(service.invoke("chat", say(f"question {n}", "busy")) for n in range(25))
        )
    assert {Outcome.COMPLETED} == {result.outcome for result in results}
    assert list(range(1, 51, 2)) == [len(request.messages) for request in api.requests]
    last = api.requests[-1].messages
    for asked, answered in zip(last[:-1:2], last[1::2], strict=True):
        assert [f"answer to {texts(asked)[0]}"] == texts(answered)


async def test_a_busy_thread_rejects_where_the_policy_says_so(tmp_path: Path) -> None:
    gate = Gate()
    with FakeMessagesAPI([FakeReply(text="One.", hold=gate)]) as api:
        async with load(tmp_path, agent(api.base_url, threadPolicy="reject")) as service:
            first = asyncio.ensure_future(service.invoke("chat", say("a")))
            await gate.reached()
            second = await service.invoke("chat", say("b"))
            gate.open()
            assert Outcome.COMPLETED == (await first).outcome
    assert second.error is not None
    assert isinstance(second.error.__cause__, ThreadBusy)


async def test_a_message_joins_the_live_run_where_the_policy_says_merge(tmp_path: Path) -> None:
    gate = Gate()
    with FakeMessagesAPI([FakeReply(text="One.", hold=gate), "Both."]) as api:
        async with load(tmp_path, agent(api.base_url, threadPolicy="merge")) as service:
            first = asyncio.ensure_future(service.invoke("chat", say("a")))
            await gate.reached()
            second = await service.invoke("chat", say("b"))
            gate.open()
            result = await first
    assert (Outcome.STOPPED, {}) == (second.outcome, second.message and second.message.body)
    assert result.message is not None
    assert "Both." == result.message.body
    assert [["a"], ["One."], ["b"]] == [texts(m) for m in api.requests[1].messages]


async def test_of_messages_that_come_at_once_the_first_answers_all(
    tmp_path: Path, storage: str
) -> None:
    """A run still waits for its conversation when the next message is there."""
    with FakeMessagesAPI(reply=lambda request: {"text": "All."}) as api:
        document = agent(api.base_url, threadPolicy="merge")
        async with load(tmp_path, document, storage) as service:
            runs = (service.invoke("chat", say(text)) for text in ("a", "b", "c"))
            first, *others = await asyncio.gather(*runs)
    assert first.message is not None
    assert "All." == first.message.body
    assert [(Outcome.STOPPED, {})] * 2 == [
        (each.outcome, each.message and each.message.body) for each in others
    ]
    assert ["a", "b", "c"] == [text for m in api.bodies[0]["messages"] for text in texts(m)]
    assert 1 == len(api.bodies)


async def test_a_message_that_arrives_while_tools_run_comes_after_their_results(
    api: FakeMessagesAPI, tmp_path: Path, held: Hold
) -> None:
    """FB-13."""
    api.add(FakeReply(tool_calls=[call("slow"), call("slow")]), "Done.")
    document = agent(api.base_url, threadPolicy="merge", tools=[tool("slow", {"type": "hold"})])
    async with load(tmp_path, document) as service:
        run = asyncio.ensure_future(service.invoke("chat", say("go")))
        await held.reached.wait()
        await service.invoke("chat", say("meanwhile"))
        held.opened.set()
        await run
    content = api.requests[1].messages[-1]["content"]
    assert ["tool_result", "tool_result", "text"] == [block["type"] for block in content]


async def test_stop_when_ends_the_live_run_and_keeps_what_happened(tmp_path: Path) -> None:
    gate = Gate()
    with FakeMessagesAPI([FakeReply(text="Never heard.", hold=gate), "Fine."]) as api:
        document = agent(api.base_url, stopWhen='body.message == "stop"')
        async with load(tmp_path, document) as service:
            first = asyncio.ensure_future(service.invoke("chat", say("work")))
            await gate.reached()
            stopper = await service.invoke("chat", say("stop"))
            stopped = await first
            gate.open()
            await service.invoke("chat", say("hello"))
    assert (Outcome.STOPPED, Outcome.STOPPED) == (stopper.outcome, stopped.outcome)
    assert [["work", "hello"]] == [texts(m) for m in api.requests[-1].messages]


async def test_stop_when_nothing_runs_is_no_error(api: FakeMessagesAPI, tmp_path: Path) -> None:
    async with load(tmp_path, agent(api.base_url, stopWhen="true")) as service:
        result = await service.invoke("chat", say("x"))
    assert (Outcome.STOPPED, []) == (result.outcome, api.requests)


async def test_a_message_that_stops_need_not_say_anything(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    async with load(tmp_path, agent(api.base_url, stopWhen="has(body.stop)")) as service:
        result = await service.invoke("chat", {"thread": "t", "stop": True})
    assert (Outcome.STOPPED, []) == (result.outcome, api.requests), result.error


async def test_a_cancelled_run_leaves_a_thread_that_accepts_the_next_message(
    tmp_path: Path, storage: str
) -> None:
    gate = Gate()
    with FakeMessagesAPI([FakeReply(text="Never heard.", hold=gate), "Fine."]) as api:
        async with load(tmp_path, agent(api.base_url), storage) as service:
            run = asyncio.ensure_future(service.invoke("chat", say("a", "cancelled")))
            await gate.reached()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            gate.open()
            result = await service.invoke("chat", say("b", "cancelled"))
    assert Outcome.COMPLETED == result.outcome
    assert [["b"]] == [texts(m) for m in api.requests[-1].messages]


async def test_a_failed_model_call_leaves_the_thread_as_it_was(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add("One.", FakeReply(error=400, message="no"), "Three.")
    async with load(tmp_path, agent(api.base_url)) as service:
        await service.invoke("chat", say("a"))
        failed = await service.invoke("chat", say("b"))
        await service.invoke("chat", say("c"))
    assert Outcome.FAILED == failed.outcome
    assert [["a"], ["One."], ["c"]] == [texts(m) for m in api.requests[-1].messages]


async def test_an_unanswered_call_in_the_store_is_answered_as_interrupted(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-04."""
    api.add("Fine.")
    async with load(tmp_path, agent(api.base_url), f"sqlite:{tmp_path}/s.db") as service:
        space: Space = service.storage.space("user")
        stored = [
            b'{"role":"user","content":[{"type":"text","text":"go"}]}',
            b'{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"echo","input":{}}]}',
        ]
        await space.append("agent-memory/t", stored)
        result = await service.invoke("chat", say("still there?"))
        log = await space.read_log("agent-memory/t")
    assert Outcome.COMPLETED == result.outcome
    answer = api.requests[0].messages[2]["content"]
    assert ("c1", True) == (answer[0]["tool_use_id"], answer[0]["is_error"])
    assert "still there?" == answer[1]["text"]
    assert log is not None
    assert stored == log.entries[:2]


async def test_a_nested_agent_on_its_callers_thread_does_not_wait_for_it(
    api: FakeMessagesAPI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.add(FakeReply(tool_calls=[call("inner")]), "From the inside.", "From the outside.")
    inner = {
        "type": "ai-agent",
        "name": "specialist",
        "connector": "claude",
        "prompt": "x",
        "answer": "text",
        "input": '"sub"',
        "memoryThreadId": '"t"',
        "tools": [],
    }
    async with load(tmp_path, agent(api.base_url, tools=[tool("inner", inner)])) as service:
        result = await service.invoke("chat", say("go"))
    assert Outcome.COMPLETED == result.outcome
    log = capsys.readouterr().err
    assert "chat.assistant[inner].specialist" in log
    assert "chat.assistant" in log


async def test_the_same_service_runs_in_two_event_loops(tmp_path: Path) -> None:
    """FB-52."""
    with FakeMessagesAPI(["One.", "Two."]) as api:
        service = load(tmp_path, agent(api.base_url), f"sqlite:{tmp_path}/s.db")

        async def once() -> None:
            async with service:
                await service.invoke("chat", say("a"))

        for _ in range(2):
            await asyncio.to_thread(asyncio.run, once())
    assert [1, 3] == [len(request.messages) for request in api.requests]
