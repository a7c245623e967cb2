"""The agent loop: what the model is asked, and what its replies lead to."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.message import Outcome
from flowrt.service import Result
from flowrt.testing import FakeMessagesAPI
from flowrt.testing.replies import FakeReply
from tests.agent.conftest import Hold
from tests.services import agent, load, say, texts


def call(name: str, call_id: str = "", **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments, "id": call_id}


def tool(name: str, *chain: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": name, "process": list(chain)}


def payload(value: str) -> dict[str, Any]:
    return {"type": "set-payload", "value": value}


def results(api: FakeMessagesAPI, request: int = 1) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = api.requests[request].messages[-1]["content"]
    return content


async def run(tmp_path: Path, document: dict[str, Any], *said: str) -> list[Result]:
    async with load(tmp_path, document) as service:
        return [await service.invoke("chat", say(text)) for text in said]


async def test_the_request_holds_the_prompt_the_tools_and_the_question(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add("Fine.")
    await run(tmp_path, agent(api.base_url, guardrail="Be kind."), "hi")
    body = api.requests[0].body
    system = body["system"][0]["text"]
    assert "Help." in system
    assert system.endswith("Guardrail: Be kind.")
    assert "JSON" not in system
    assert ["echo"] == [tool["name"] for tool in body["tools"]]
    assert {"type": "object"} == body["tools"][0]["input_schema"]
    assert ["hi"] == texts(body["messages"][0])


async def test_without_input_the_question_is_the_body_as_json(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add("{}")
    await run(tmp_path, agent(api.base_url, input=None, answer="json"), "hi")
    (text,) = texts(api.requests[0].messages[0])
    assert say("hi") == json.loads(text.partition("\n")[2])
    assert "JSON" in api.requests[0].body["system"][0]["text"]


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        ('{"reply": 1}', {"reply": 1}),
        ('```json\n{"reply": 1}\n```', {"reply": 1}),
        ("42", 42),
        ("plain words", "plain words"),
        ("NaN", "NaN"),
    ],
)
async def test_the_answer_becomes_the_body(
    api: FakeMessagesAPI, tmp_path: Path, answer: str, body: Any
) -> None:
    api.add(answer)
    (result,) = await run(tmp_path, agent(api.base_url), "hi")
    assert result.message is not None
    assert body == result.message.body


async def test_a_tool_gets_the_arguments_and_its_body_goes_back(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(FakeReply(tool_calls=[call("double", "c1", n=2)]), "4")
    doubled = tool("double", payload('{"twice": body.n * 2, "tool": vars.toolName}'))
    await run(tmp_path, agent(api.base_url, tools=[doubled]), "hi")
    (result,) = results(api)
    assert ("c1", '{"tool": "double", "twice": 4}') == (result["tool_use_id"], result["content"])


async def test_a_single_call_keeps_the_variables_it_sets(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(FakeReply(tool_calls=[call("note")]), FakeReply(tool_calls=[call("read")]), "ok")
    note = tool("note", {"type": "set-variable", "settings": {"name": "note", "value": '"kept"'}})
    (result,) = await run(
        tmp_path, agent(api.base_url, tools=[note, tool("read", payload("vars.note"))]), "hi"
    )
    assert '"kept"' == results(api, 2)[0]["content"]
    assert result.message is not None
    assert {"note": "kept"} == dict(result.message.vars)


async def test_parallel_calls_do_not_see_each_other_and_keep_their_order(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-14: all results are in one user message."""
    api.add(FakeReply(tool_calls=[call("mark", f"c{n}", n=n) for n in range(4)]), "ok")
    mark = tool(
        "mark",
        payload('{"n": body.n, "seen": "mark" in vars}'),
        {"type": "set-variable", "settings": {"name": "mark", "value": "body.n"}},
    )
    (result,) = await run(tmp_path, agent(api.base_url, tools=[mark]), "hi")
    found = results(api)
    assert [f"c{n}" for n in range(4)] == [r["tool_use_id"] for r in found]
    assert [{"n": n, "seen": False} for n in range(4)] == [json.loads(r["content"]) for r in found]
    assert result.message is not None
    assert "mark" not in result.message.vars


async def test_one_failing_tool_does_not_lose_the_others(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-16."""
    api.add(FakeReply(tool_calls=[call("good"), call("bad"), call("good")]), "ok")
    document = agent(
        api.base_url, tools=[tool("good", payload('"fine"')), tool("bad", payload("body.missing"))]
    )
    (result,) = await run(tmp_path, document, "hi")
    found = results(api)
    assert [False, True, False] == [r.get("is_error", False) for r in found]
    assert "no such key: missing" in found[1]["content"]
    assert Outcome.COMPLETED == result.outcome


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [("nowhere", {}, 'unknown tool "nowhere"'), ("echo", {}, "empty object")],
)
async def test_a_call_that_cannot_work_is_told_to_the_model(
    api: FakeMessagesAPI, tmp_path: Path, name: str, arguments: dict[str, Any], expected: str
) -> None:
    api.add(FakeReply(tool_calls=[call(name, **arguments)]), "ok")
    await run(tmp_path, agent(api.base_url), "hi")
    assert expected in results(api)[0]["content"]


@pytest.mark.parametrize("value", ["null", '""', "[]", "{}", '"  "'])
async def test_a_tool_that_returns_nothing_says_so(
    api: FakeMessagesAPI, tmp_path: Path, value: str
) -> None:
    """FB-12."""
    api.add(FakeReply(tool_calls=[call("void")]), "ok")
    (result,) = await run(tmp_path, agent(api.base_url, tools=[tool("void", payload(value))]), "hi")
    assert results(api)[0]["content"].strip()
    assert Outcome.COMPLETED == result.outcome


async def test_a_tool_that_drops_its_message_gives_an_error_result(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(FakeReply(tool_calls=[call("gone")]), "ok")
    gone = tool("gone", {"type": "filter", "expr": "false"})
    await run(tmp_path, agent(api.base_url, tools=[gone]), "hi")
    assert results(api)[0]["is_error"]


async def test_the_scope_of_a_tool_is_stable_for_the_conversation(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(*[FakeReply(tool_calls=[call("where")]), "ok"] * 2)
    await run(
        tmp_path, agent(api.base_url, tools=[tool("where", payload("vars.toolScope"))]), "a", "b"
    )
    first, second = results(api, 1)[0]["content"], results(api, 3)[0]["content"]
    assert first == second
    thread, digest, name = json.loads(first).split("/")
    assert ("t", 16, "where") == (thread, len(digest), name)


async def test_a_run_that_never_answers_takes_the_default_path_with_the_reason(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-22."""
    api.reply = lambda _: FakeReply(tool_calls=[call("echo", x=1)])
    fallback = {"process": [payload("vars.guardrail")]}
    document = agent(api.base_url, maxIterations=3, default=fallback)
    async with load(tmp_path, document) as service:
        first = await service.invoke("chat", say("hi"))
        api.reply = lambda _: "fine again"
        second = await service.invoke("chat", say("and now?"))
    assert first.message is not None
    assert "max_iterations" == first.message.body["reason"]
    assert "3 model calls" in first.message.body["text"]
    assert Outcome.COMPLETED == second.outcome


async def test_without_a_default_path_a_run_that_never_answers_fails(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.reply = lambda _: FakeReply(tool_calls=[call("echo", x=1)])
    (result,) = await run(tmp_path, agent(api.base_url, maxIterations=2), "hi")
    assert 'block "assistant": ai-agent: exceeded max iterations: ' in str(result.error)
    assert "no answer after 2 model calls" in str(result.error)


async def test_without_a_default_path_a_refusal_fails_in_the_dialect_s_words(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(FakeReply(text="I cannot.", stop_reason="refusal"))
    (result,) = await run(tmp_path, agent(api.base_url), "hi")
    assert "ai-agent: model refused and no guardrail configured" in str(result.error)


async def test_a_refusal_takes_the_default_path(api: FakeMessagesAPI, tmp_path: Path) -> None:
    api.add(FakeReply(text="I cannot.", stop_reason="refusal"))
    fallback = {"process": [payload("vars.guardrail.reason")]}
    (result,) = await run(tmp_path, agent(api.base_url, default=fallback), "hi")
    assert result.message is not None
    assert "refusal" == result.message.body


async def test_calls_cut_off_by_the_token_limit_are_not_run(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-19."""
    cut = FakeReply(tool_calls=[call("echo")], stop_reason="max_tokens")
    api.add(cut, cut, cut)
    (result,) = await run(tmp_path, agent(api.base_url), "hi")
    for request in (1, 2):
        (told,) = results(api, request)
        assert told["is_error"]
        assert "cut off" in told["content"]
    assert 3 == len(api.requests)
    assert "cut off by the token limit" in str(result.error)


async def test_blank_text_in_a_reply_is_not_sent_back(api: FakeMessagesAPI, tmp_path: Path) -> None:
    """FB-11."""
    blocks = [
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "c1", "name": "echo", "input": {"a": 1}},
    ]
    api.add(FakeReply(content=blocks), "ok\n", "again")
    results_ = await run(tmp_path, agent(api.base_url), "hi", "more")
    assert [Outcome.COMPLETED] * 2 == [result.outcome for result in results_]
    assert ["tool_use"] == [b["type"] for b in api.requests[1].messages[1]["content"]]


async def test_a_trailing_new_line_is_stored_and_never_ends_a_request(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-10."""
    api.add("ok\n", "again")
    await run(tmp_path, agent(api.base_url), "hi", "more")
    said = [(message["role"], texts(message)) for message in api.requests[1].messages]
    assert [("user", ["hi"]), ("assistant", ["ok\n"]), ("user", ["more"])] == said


async def test_thinking_and_unknown_blocks_survive_storage_untouched(
    api: FakeMessagesAPI, tmp_path: Path, redis_url: str
) -> None:
    """FB-17."""
    blocks = [
        {"type": "thinking", "thinking": "so… “quoted”", "signature": "sig+/="},
        {"type": "redacted_thinking", "data": "b64+/=="},
        {"type": "from_the_future", "value": {"a": [1, None]}},
        {"type": "tool_use", "id": "c1", "name": "echo", "input": {"z": 1, "a": 2}},
    ]
    for storage in (f"sqlite:{tmp_path}/s.db", redis_url):
        thread = f"untouched-{storage[:5]}"
        api.add(FakeReply(content=blocks), "ok", "again")
        for text in ("hi", "more"):
            async with load(tmp_path, agent(api.base_url), storage) as service:
                result = await service.invoke("chat", say(text, thread))
                assert Outcome.COMPLETED == result.outcome
        sent = api.requests[-1].messages[1]["content"]
        assert json.dumps(blocks) == json.dumps(sent)


async def test_unsigned_thinking_is_not_sent_back(api: FakeMessagesAPI, tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "text", "text": "ok"},
    ]
    api.add(FakeReply(content=blocks), "again")
    await run(tmp_path, agent(api.base_url), "hi", "more")
    assert ["text"] == [block["type"] for block in api.requests[1].messages[1]["content"]]


async def test_overload_is_retried_and_the_turn_stored_once(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-23."""
    overloaded = FakeReply(error=529, headers={"retry-after-ms": "1"})
    api.add(overloaded, overloaded, "fine", "again")
    await run(tmp_path, agent(api.base_url), "hi", "more")
    assert [529, 529, 200, 200] == [request.status for request in api.requests]
    assert 3 == len(api.requests[-1].messages)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
async def test_a_final_refusal_is_never_sent_again(
    api: FakeMessagesAPI, tmp_path: Path, status: int
) -> None:
    api.add(FakeReply(error=status, message="no"))
    (result,) = await run(tmp_path, agent(api.base_url), "hi")
    assert (Outcome.FAILED, 1) == (result.outcome, len(api.requests))


async def test_a_provider_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    document = agent("http://127.0.0.1:9", connection={"maxRetries": 0})
    (result,) = await run(tmp_path, document, "hi")
    assert 'llm-anthropic stream: Post "http://127.0.0.1:9/v1/messages"' in str(result.error)


async def test_a_tool_whose_own_work_is_cancelled_is_an_error_for_the_model(
    api: FakeMessagesAPI, tmp_path: Path, held: Hold
) -> None:
    """FB-07."""
    api.add(FakeReply(tool_calls=[call("timed")]), "ok")

    class TimedOut(Exception):
        """An error without a text."""

    held.failure = TimedOut()
    held.opened.set()
    timed = tool("timed", {"type": "hold", "name": "slow-call"})
    (result,) = await run(tmp_path, agent(api.base_url, tools=[timed]), "hi")
    assert 'block "slow-call": TimedOut' == results(api)[0]["content"]
    held.failure = asyncio.CancelledError()
    api.add(FakeReply(tool_calls=[call("timed")]), "ok")
    (result,) = await run(tmp_path, agent(api.base_url, tools=[timed]), "hi")
    assert "the tool was cancelled" == results(api, 3)[0]["content"]
    assert Outcome.COMPLETED == result.outcome


async def test_text_that_no_store_can_hold_is_replaced_on_the_way_in(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-50 and FB-51."""
    api.add("one", "two")
    outcomes = await run(tmp_path, agent(api.base_url), "nul \x00 and \ud83d", "more")
    assert [Outcome.COMPLETED] * 2 == [result.outcome for result in outcomes]
    assert ["nul \ufffd and \ufffd"] == texts(api.requests[1].messages[0])


@pytest.mark.parametrize("text", ["${env.SECRET}", "{{1+1}}", "${HOME}"])
async def test_a_users_text_is_never_run(api: FakeMessagesAPI, tmp_path: Path, text: str) -> None:
    """FB-90."""
    api.add(text)
    (result,) = await run(tmp_path, agent(api.base_url), text)
    assert [text] == texts(api.requests[0].messages[0])
    assert result.message is not None
    assert text == result.message.body


async def test_model_tokens_and_temperature_of_the_block_reach_the_request(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add("ok")
    await run(tmp_path, agent(api.base_url, model="other", maxTokens=77, temperature=0.5), "hi")
    body = api.requests[0].body
    assert ("other", 77, 0.5) == (body["model"], body["max_tokens"], body["temperature"])
