"""Compaction: what is forgotten, when, and what is said about it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from flowrt.testing import FakeMessagesAPI
from flowrt.testing.messages_tokens import count_request as count_tokens
from flowrt.testing.replies import FakeReply
from tests.agent.compacting import LONG, Listener, talk
from tests.services import agent, load, say, texts


async def test_at_every_budget_each_request_is_valid_and_holds_the_question(
    tmp_path: Path,
) -> None:
    """FB-01 and FB-29: a budget of 1 has a meaning."""

    def answer(body: dict[str, Any]) -> FakeReply:
        (text, *_) = texts(body["messages"][-1]) or [""]
        if "use the tool" in text:
            return FakeReply(tool_calls=[{"name": "echo", "input": {"x": LONG}}])
        return FakeReply(text="fine " * 20)

    for budget in (1, 50, 150, 300, 500, 800, 1200, 2000, 5000):
        with FakeMessagesAPI(reply=answer) as api:
            async with load(tmp_path, agent(api.base_url, contextMaxTokens=budget)) as service:
                await talk(service, "use the tool", "question 1", "question 2", "question 3")
            assert {200} == {request.status for request in api.requests}
            asked = [(texts(request.messages[-1]) or [""])[-1] for request in api.requests]
            assert [f"question {n}" for n in (1, 2, 3)] == asked[-3:]


async def test_the_working_context_begins_with_a_real_user_message(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-09."""
    api.reply = lambda _: "fine " * 50
    async with load(tmp_path, agent(api.base_url, contextMaxTokens=700)) as service:
        await talk(service, *(f"question {n} {LONG[:300]}" for n in range(12)))
    for request in api.requests:
        first = request.messages[0]
        assert "user" == first["role"]
        assert texts(first)[0].startswith("question ")


async def test_a_prompt_stays_within_the_budget_as_the_provider_counts_it(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.reply = lambda _: "fine " * 50
    async with load(tmp_path, agent(api.base_url, contextMaxTokens=1500)) as service:
        await talk(service, *(f"question {n} {LONG[:400]}" for n in range(20)))
    assert max(count_tokens(request.body) for request in api.requests) <= 1500
    assert len(api.requests[-1].messages) > 3
    assert [] == api.counts  # FB-03: the meter learns from usage and asks for no counts


async def test_the_budget_covers_the_system_prompt_and_the_tools(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-25."""
    api.reply = lambda _: "fine"
    fat = {"type": "object", "description": "x" * 400}
    tools = [
        {"name": f"t{n}", "description": "d", "inputSchema": fat, "process": []} for n in range(40)
    ]
    document = agent(api.base_url, prompt="p " * 2000, tools=tools)
    async with load(tmp_path, document) as service:
        await talk(service, "short")
    overhead = count_tokens(api.requests[0].body)
    document["flows"][0]["process"][0]["contextMaxTokens"] = overhead + 500
    listener = Listener()
    async with load(tmp_path, document) as service:
        await talk(service, "a " + LONG, "b " + LONG, "c " + LONG, watcher=listener)
    assert listener.of("compaction_end")
    assert max(count_tokens(request.body) for request in api.requests) <= overhead + 500


async def test_a_resumed_thread_over_the_budget_is_cut_before_its_first_call(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.reply = lambda _: "fine " * 40
    store = f"sqlite:{tmp_path}/s.db"
    async with load(tmp_path, agent(api.base_url, contextMaxTokens=20_000), store) as service:
        await talk(service, *(f"question {n} {LONG}" for n in range(8)))
    before = len(api.requests)
    async with load(tmp_path, agent(api.base_url, contextMaxTokens=1500), store) as service:
        await talk(service, "and now?")
    assert count_tokens(api.requests[before].body) <= 1500


async def test_in_one_long_run_the_oldest_tool_rounds_go_and_the_latest_stay(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    replies = [
        FakeReply(tool_calls=[{"name": "echo", "input": {"round": n, "x": LONG[:400]}}])
        for n in range(12)
    ]
    api.add(*replies, "done")
    document = agent(api.base_url, contextMaxTokens=1600, maxIterations=20)
    async with load(tmp_path, document) as service:
        await talk(service, "the question")
    last = api.requests[-1]
    assert ["the question"] == texts(last.messages[0])
    sent = json.dumps(last.body["messages"])
    assert '"round": 11' in sent
    assert '"round": 10' in sent
    assert '"round": 0,' not in sent


async def test_the_question_is_kept_where_the_budget_cannot_hold_it(
    api: FakeMessagesAPI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """FB-28."""
    api.reply = lambda _: "fine"
    async with load(tmp_path, agent(api.base_url, contextMaxTokens=10)) as service:
        await talk(service, "first " + LONG, "second " + LONG)
    assert texts(api.requests[-1].messages[-1])[0].startswith("second")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    stuck = next(line for line in lines if "cannot hold" in line["event"])
    assert {"contextMaxTokens", "systemAndTools", "latestExchange"} <= set(stuck)


async def test_a_prompt_the_provider_finds_too_long_is_cut_once_and_sent_again(
    tmp_path: Path,
) -> None:
    with FakeMessagesAPI(reply=lambda _: "fine " * 40, window=1500) as api:
        async with load(tmp_path, agent(api.base_url, contextMaxTokens=100_000)) as service:
            await talk(service, *(f"question {n} {LONG[:600]}" for n in range(9)))
    refused = [request for request in api.requests if request.status == 400]
    assert refused
    assert all("prompt is too long" not in str(r.status) for r in api.requests)
    assert 9 == sum(request.status == 200 for request in api.requests)


async def test_a_prompt_that_cannot_get_shorter_fails_after_one_call(tmp_path: Path) -> None:
    with FakeMessagesAPI(window=10) as api:
        async with load(tmp_path, agent(api.base_url)) as service:
            result = await service.invoke("chat", say(LONG))
    assert "prompt is too long" in str(result.error)
    assert 1 == len(api.requests)


async def test_the_gauge_rides_on_every_turn_end(api: FakeMessagesAPI, tmp_path: Path) -> None:
    api.add("fine")
    listener = Listener()
    async with load(tmp_path, agent(api.base_url, contextMaxTokens=5000)) as service:
        await talk(service, "hi", watcher=listener)
    (end,) = listener.of("turn_end")
    usage = end["usage"]
    assert usage["promptTokens"] + usage["outputTokens"] == end["contextTokens"]
    assert 5000 == end["contextMaxTokens"]


async def test_each_request_extends_the_prefix_of_the_one_before(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.reply = lambda body: (
        FakeReply(tool_calls=[{"name": "echo", "input": {"x": 1}}])
        if "tool" in "".join(texts(body["messages"][-1]))
        else FakeReply(text="fine")
    )
    async with load(tmp_path, agent(api.base_url)) as service:
        await talk(service, "use the tool", "plain", "use the tool again")
    for before, after in pairwise(api.requests):
        old, new = prefix(before.body), prefix(after.body)
        assert old == new[: len(old)]
    assert api.requests[0].body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    reads = [count_tokens(request.body) for request in api.requests]
    assert sorted(reads) == reads


def prefix(body: dict[str, Any]) -> list[str]:
    """The request as the provider's cache sees it: tools, system, then each message."""
    text = json.dumps([body.get("tools"), body.get("system")])
    parts = [text, *(json.dumps(message) for message in body["messages"])]
    return [part.replace(', "cache_control": {"type": "ephemeral"}', "") for part in parts]


async def test_bytes_stored_for_a_turn_do_not_grow_with_the_conversation(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-44."""
    api.reply = lambda _: "fine " * 40
    sizes = []
    async with load(tmp_path, agent(api.base_url), f"sqlite:{tmp_path}/s.db") as service:
        space = service.storage.space("user")
        for n in range(30):
            await talk(service, f"question {n:03d} {LONG[:200]}")
            log = await space.read_log("agent-memory/t")
            assert log is not None
            sizes.append(sum(len(entry) for entry in log.entries))
    grown = [after - before for before, after in pairwise(sizes)]
    assert 1 == len(set(grown))
