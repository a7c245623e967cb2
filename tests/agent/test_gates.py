"""Gated calls: who may answer, when, and what the model is told where nobody allows them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.engine import registry
from flowrt.engine.block import Block, Settings
from flowrt.engine.run import Run
from flowrt.message import Message, Outcome
from flowrt.service import Result, Service
from flowrt.testing import FakeMessagesAPI, FakeReply
from flowrt.testing.suite.clock import CaseClock
from tests.services import agent, load, say

Event = dict[str, Any]


def call(number: int, tool: str = "pay", **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "id": f"c{number}", "input": arguments}


def pay(authorize: str = "true", *chain: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "pay",
        "description": "Pays.",
        "authorize": authorize,
        "process": list(chain) or [{"type": "set-payload", "value": '"paid"'}],
    }


def gated(api: FakeMessagesAPI, *tools: dict[str, Any], **settings: Any) -> dict[str, Any]:
    settings = {
        "authorizeId": "has(body.answer) ? body.answer : null",
        "authorizeAllow": "body.allow",
        "events": {"process": []},
        "tools": list(tools) or [pay()],
        **settings,
    }
    return agent(api.base_url, **settings)


class Person:
    """Watches a run and answers with messages of its own."""

    delta = None

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.asked: asyncio.Queue[Event] = asyncio.Queue()

    def event(self, event: Event) -> None:
        self.events.append(event)
        if event["type"] == "tool_authorization":
            self.asked.put_nowait(event)

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["type"] == kind]


def start(service: Service, person: Person, text: str = "Pay.") -> asyncio.Task[Result]:
    return asyncio.create_task(service.invoke("chat", say(text), watcher=person))


async def answer(service: Service, asked: Event, allow: Any, thread: str = "t") -> Result:
    return await service.invoke(
        "chat", {"thread": thread, "answer": asked["authorizationId"], "allow": allow}
    )


def results(api: FakeMessagesAPI) -> list[tuple[Any, bool]]:
    """What the model was told of its calls in the last request."""
    content = api.requests[-1].messages[-1]["content"]
    found = [block for block in content if block["type"] == "tool_result"]
    return [(block["content"], block.get("is_error", False)) for block in found]


async def test_an_allowed_call_runs_and_its_answer_ends_its_own_flow(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(FakeReply(tool_calls=[call(1, amount=5)]), "Paid.")
    person = Person()
    async with load(tmp_path, gated(api)) as service:
        running = start(service, person)
        asked = await person.asked.get()
        answered = await answer(service, asked, True)
        result = await running
    assert {"tool": "pay", "toolCallId": "c1", "input": {"amount": 5}} == {
        key: asked[key] for key in ("tool", "toolCallId", "input")
    }
    assert 300 == asked["expiresInSeconds"]
    assert Outcome.STOPPED == answered.outcome
    assert answered.message is not None
    assert {} == answered.message.body
    assert result.message is not None
    assert "Paid." == result.message.body
    assert [('"paid"', False)] == results(api)
    assert [("authorize", True)] == [(e["signal"], e["allowed"]) for e in person.of("signal")]


@pytest.mark.parametrize("allow", [False, None, "true", 1, [True], {"allow": True}])
async def test_any_answer_but_true_denies(api: FakeMessagesAPI, tmp_path: Path, allow: Any) -> None:
    api.add(FakeReply(tool_calls=[call(1)]), "No.")
    person = Person()
    async with load(tmp_path, gated(api)) as service:
        running = start(service, person)
        await answer(service, await person.asked.get(), allow)
        await running
    [(told, failed)] = results(api)
    assert {"authorized": False, "reason": "the call was not approved"} == json.loads(told)
    assert failed


async def test_an_answer_whose_expression_fails_denies(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(FakeReply(tool_calls=[call(1)]), "No.")
    person = Person()
    async with load(tmp_path, gated(api, authorizeAllow="body.missing.key")) as service:
        running = start(service, person)
        await answer(service, await person.asked.get(), True)
        await running
    assert results(api)[0][1]


async def test_the_first_answer_counts_and_later_ones_find_nothing(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(FakeReply(tool_calls=[call(1)]), "No.")
    person = Person()
    async with load(tmp_path, gated(api)) as service:
        running = start(service, person)
        asked = await person.asked.get()
        first, second = await asyncio.gather(
            answer(service, asked, False), answer(service, asked, True)
        )
        await running
        late = await answer(service, asked, True)
    assert results(api)[0][1]
    assert [{}, {}, {}] == [r.message.body for r in (first, second, late) if r.message]
    assert 2 == len(api.requests)


async def test_gates_come_one_after_the_other_and_before_every_tool(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    echo = {"name": "echo", "description": "e", "process": []}
    api.add(FakeReply(tool_calls=[call(1), call(2, "echo"), call(3)]), "Done.")
    person = Person()
    async with load(tmp_path, gated(api, pay(), echo)) as service:
        running = start(service, person)
        first = await person.asked.get()
        for _ in range(20):
            await asyncio.sleep(0)
        assert person.asked.empty()
        assert [] == person.of("tool_result")
        await answer(service, first, False)
        second = await person.asked.get()
        await answer(service, second, True)
        await running
    assert ["c1", "c3"] == [e["toolCallId"] for e in person.of("tool_authorization")]
    assert [True, False, False] == [failed for _, failed in results(api)]


async def test_only_calls_for_which_the_condition_holds_wait(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    condition = 'input.amount > 10 && tool.name == "pay" && tool.id == "c2" && body.thread == "t"'
    api.add(FakeReply(tool_calls=[call(1, amount=5), call(2, amount=50)]), "Done.")
    person = Person()
    async with load(tmp_path, gated(api, pay(condition))) as service:
        running = start(service, person)
        await answer(service, await person.asked.get(), True)
        await running
    assert ["c2"] == [e["toolCallId"] for e in person.of("tool_authorization")]
    assert [('"paid"', False), ('"paid"', False)] == results(api)


@pytest.mark.parametrize("condition", ["input.amount > 10", "input.missing", '"yes"', "null"])
async def test_a_condition_that_fails_or_is_no_bool_denies_without_asking(
    api: FakeMessagesAPI, tmp_path: Path, condition: str
) -> None:
    api.add(FakeReply(tool_calls=[call(1, amount="much")]), "No.")
    person = Person()
    async with load(tmp_path, gated(api, pay(condition))) as service:
        await start(service, person)
    [(told, failed)] = results(api)
    assert failed
    assert json.loads(told)["authorized"] is False
    assert [] == person.of("tool_authorization")


async def test_the_time_for_an_answer_is_told_in_whole_seconds(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """An events chain divides it by 60, which fails where it is sometimes a double."""
    api.add(FakeReply(tool_calls=[call(1)]), "No.")
    person, clock = Person(), CaseClock()
    document = gated(api, authorizeTimeout="1m30.5s")
    async with load(tmp_path, document, clock=clock) as service:
        running = start(service, person)
        asked = await person.asked.get()
        clock.advance(91)
        await running
    assert (90, int) == (asked["expiresInSeconds"], type(asked["expiresInSeconds"]))


async def test_a_call_that_nobody_answers_is_denied_when_its_time_is_over(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(FakeReply(tool_calls=[call(1)]), "No.")
    person, clock = Person(), CaseClock()
    document = gated(api, authorizeTimeout="90s")
    async with load(tmp_path, document, clock=clock) as service:
        running = start(service, person)
        asked = await person.asked.get()
        clock.advance(89)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not running.done()
        clock.advance(2)
        await running
        await answer(service, asked, True)
    assert 90 == asked["expiresInSeconds"]
    assert "nobody answered within 90 seconds" in results(api)[0][0]
    assert [] == person.of("signal")


async def test_an_events_chain_may_answer_while_it_is_told(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    class Approve(Block[Settings]):
        Settings = Settings

        async def run(self, message: Message, run: Run) -> Message:
            assert run.runtime.live.answer(message.body["authorizationId"], True)
            return message

    registry.blocks.add("approve", Approve)
    api.add(FakeReply(tool_calls=[call(1)]), "Paid.")
    events = {"process": [{"type": "approve"}]}
    async with load(tmp_path, gated(api, events=events, emit=["tool_authorization"])) as service:
        await service.invoke("chat", say("Pay."))
    assert [('"paid"', False)] == results(api)


async def test_an_events_chain_that_stops_the_run_when_asked_ends_the_waiting(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    class Stop(Block[Settings]):
        Settings = Settings

        async def run(self, message: Message, run: Run) -> Message:
            message.stop = True
            return message

    registry.blocks.add("stop-here", Stop)
    api.add(FakeReply(tool_calls=[call(1)]))
    events = {"process": [{"type": "stop-here"}]}
    async with load(tmp_path, gated(api, events=events, emit=["tool_authorization"])) as service:
        result = await service.invoke("chat", say("Pay."))
    assert Outcome.STOPPED == result.outcome


@pytest.mark.parametrize("what", ["stop", "cancel"])
async def test_a_run_that_ends_leaves_no_gate_behind(
    api: FakeMessagesAPI, tmp_path: Path, what: str
) -> None:
    api.add(FakeReply(tool_calls=[call(1)]), "Again.")
    person = Person()
    document = gated(api, stopWhen="has(body.stop)")
    async with load(tmp_path, document) as service:
        running = start(service, person)
        asked = await person.asked.get()
        [live] = service.live._runs.values()
        if what == "stop":
            await service.invoke("chat", {"thread": "t", "stop": True})
            result = await running
            assert Outcome.STOPPED == result.outcome
        else:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert not live.decisions.answer(asked["authorizationId"], True)
        await answer(service, asked, True)
        again = await service.invoke("chat", say("Hello."))
    assert again.error is None
    assert [] == person.of("tool_result")


async def test_an_answer_needs_nothing_of_what_an_ordinary_message_holds(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """`input` looks for `body.message`, which an answer has not."""
    async with load(tmp_path, gated(api)) as service:
        result = await service.invoke("chat", {"thread": "t", "answer": "auth_x", "allow": True})
    assert result.error is None
    assert [] == api.requests


@pytest.mark.parametrize("given", [5, True, ["auth_x"]])
async def test_an_answer_to_what_is_no_id_is_an_error(
    api: FakeMessagesAPI, tmp_path: Path, given: Any
) -> None:
    async with load(tmp_path, gated(api)) as service:
        result = await service.invoke("chat", {"thread": "t", "answer": given, "allow": True})
    assert "authorizeId evaluates to" in str(result.error)


async def test_a_hundred_runs_wait_side_by_side_and_get_their_own_answers(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    def reply(body: dict[str, Any]) -> Any:
        if body["messages"][-1]["content"][0]["type"] == "tool_result":
            return body["messages"][-1]["content"][0]["content"]
        return FakeReply(tool_calls=[{"name": "pay", "input": {}}])

    with FakeMessagesAPI(reply=reply) as many:
        async with load(tmp_path, gated(many)) as service:
            people = [Person() for _ in range(100)]
            running = [
                asyncio.create_task(
                    service.invoke("chat", say("Pay.", f"t{number}"), watcher=person)
                )
                for number, person in enumerate(people)
            ]
            for number, person in enumerate(people):
                await answer(service, await person.asked.get(), number % 2 == 0, f"t{number}")
            results = await asyncio.gather(*running)
    bodies = [result.message.body for result in results if result.message]
    assert ["paid", False] * 50 == [b if b == "paid" else b["authorized"] for b in bodies]


async def test_a_call_that_was_cut_off_asks_nobody(api: FakeMessagesAPI, tmp_path: Path) -> None:
    """FB-19."""
    api.add(FakeReply(tool_calls=[call(1)], stop_reason="max_tokens"), "Sorry.")
    person = Person()
    async with load(tmp_path, gated(api)) as service:
        await start(service, person)
    assert [] == person.of("tool_authorization")


async def test_a_gate_in_a_nested_agent_on_the_same_thread_is_answered_there_too(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    document = gated(api)
    inner = document["flows"][0]["process"][0]
    outer = {
        key: value
        for key, value in inner.items()
        if not key.startswith("authorize") and key != "events"
    }
    outer |= {
        "name": "outer",
        "authorizeId": inner["authorizeId"],
        "authorizeAllow": inner["authorizeAllow"],
        "tools": [
            {
                "name": "ask",
                "description": "a",
                "process": [
                    {"type": "set-payload", "value": '{"thread": "t", "message": "Pay."}'},
                    inner,
                ],
            }
        ],
    }
    document["flows"][0]["process"] = [outer]
    api.add(
        FakeReply(tool_calls=[call(1, "ask")]),
        FakeReply(tool_calls=[call(2)]),
        "inner done",
        "outer done",
    )
    person = Person()
    async with load(tmp_path, document) as service:
        running = start(service, person)
        await answer(service, await person.asked.get(), True)
        result = await running
    assert result.message is not None, result.error
    assert "outer done" == result.message.body
