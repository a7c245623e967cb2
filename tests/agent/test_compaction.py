"""Compaction: what is forgotten, when, and what is said about it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from flowrt.clock import SystemClock
from flowrt.message import Outcome
from flowrt.observe.trace import Trace
from flowrt.service import Service
from flowrt.testing import FakeMessagesAPI
from flowrt.testing.messages_script import FakeReply
from flowrt.testing.messages_tokens import count_request as count_tokens
from tests.services import agent, load, say, texts

LONG = "word " * 200


class Listener:
    """Collects the events of a run."""

    delta: None = None

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def event(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]


def is_summary_request(body: dict[str, Any]) -> bool:
    return "record" in body["system"][0]["text"] and not body.get("tools")


def summaries(api: FakeMessagesAPI) -> list[dict[str, Any]]:
    return [r.body for r in api.requests if is_summary_request(r.body)]


def turns(api: FakeMessagesAPI) -> list[dict[str, Any]]:
    return [r.body for r in api.requests if not is_summary_request(r.body)]


async def talk(service: Service, *said: str, watcher: Listener | None = None) -> None:
    for text in said:
        result = await service.invoke("chat", say(text), watcher=watcher)
        assert Outcome.COMPLETED == result.outcome, result.error


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


def summarizing(summary: str, reply: str = "fine " * 40) -> Any:
    def answer(body: dict[str, Any]) -> FakeReply:
        return FakeReply(text=summary if is_summary_request(body) else reply)

    return answer


async def test_a_summary_stands_in_for_what_was_forgotten(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-36: as a record of the past, with one end mark."""
    api.reply = summarizing("The user is called Sam.")
    document = agent(api.base_url, contextMaxTokens=1500, memoryCompaction="summarize")
    listener = Listener()
    async with load(tmp_path, document) as service:
        await talk(service, *(f"question {n} {LONG[:500]}" for n in range(9)), watcher=listener)
    (asked, *_) = summaries(api)
    assert "question 0" in texts(asked["messages"][0])[0]
    assert "Help." not in json.dumps(asked)
    opening = texts(turns(api)[-1]["messages"][0])[0]
    assert "The user is called Sam." in opening
    assert opening.startswith("<record-of-earlier-conversation>")
    assert "Nothing in it is a request" in opening
    assert 1 == opening.count("</record-of-earlier-conversation>")
    started, ended = listener.of("compaction_start")[0], listener.of("compaction_end")[0]
    assert started["contextMaxTokens"] == ended["contextMaxTokens"] == 1500
    assert ended["dropped"] > 0


async def test_a_fact_survives_three_compactions_with_a_weak_summariser(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-34."""
    written = iter(["Sam is allergic to nuts.", "They talked.", "They talked more.", "And more."])

    def answer(body: dict[str, Any]) -> FakeReply:
        text = next(written, "…") if is_summary_request(body) else "fine " * 40
        return FakeReply(text=text)

    api.reply = answer
    document = agent(api.base_url, contextMaxTokens=2000, memoryCompaction="summarize")
    async with load(tmp_path, document) as service:
        await talk(service, *(f"question {n} {LONG[:600]}" for n in range(24)))
    assert len(summaries(api)) >= 3
    assert "allergic to nuts" in json.dumps(turns(api)[-1])


@pytest.mark.parametrize(
    "failure",
    [
        FakeReply(error=400, message="no"),
        FakeReply(text="  "),
        FakeReply(text="no", stop_reason="refusal"),
    ],
)
async def test_a_failed_summary_prunes_and_never_becomes_the_summary(
    api: FakeMessagesAPI,
    tmp_path: Path,
    failure: FakeReply,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """FB-30."""
    api.reply = lambda body: failure if is_summary_request(body) else FakeReply(text="fine " * 40)
    document = agent(api.base_url, contextMaxTokens=1500, memoryCompaction="summarize")
    async with load(tmp_path, document) as service:
        await talk(service, *(f"question {n} {LONG[:500]}" for n in range(9)))
    assert "record-of-earlier" not in json.dumps(turns(api)[-1])
    assert "the summary failed; pruning instead" in capsys.readouterr().err


async def test_a_tail_that_is_over_the_budget_is_not_summarised_again_and_again(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-32."""
    api.reply = summarizing("Short.")
    document = agent(api.base_url, contextMaxTokens=400, memoryCompaction="summarize")
    listener = Listener()
    async with load(tmp_path, document) as service:
        await talk(service, *(f"question {n} {LONG}" for n in range(10)), watcher=listener)
    assert len(listener.of("compaction_end")) <= 10
    told = [texts(body["messages"][0])[0] for body in summaries(api)]
    assert all("question" in text or "fine" in text for text in told)


async def test_a_history_too_long_for_one_summary_is_summarised_in_parts(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path}/s.db"
    api.reply = summarizing("A part.")
    async with load(tmp_path, agent(api.base_url), store) as service:
        await talk(service, *(f"question {n} {LONG * 4}" for n in range(9)))
    document = agent(api.base_url, contextMaxTokens=3000, memoryCompaction="summarize")
    async with load(tmp_path, document, store) as service:
        await talk(service, "and now?")
    assert len(summaries(api)) > 1
    assert max(count_tokens(body) for body in summaries(api)) <= 3000


async def test_pictures_count_a_flat_cost_and_never_reach_the_summariser(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-27."""
    api.reply = summarizing("A picture was shown.")
    store = f"sqlite:{tmp_path}/s.db"
    data = "A" * 1_000_000
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    entries = [
        {"role": "user", "content": [{"type": "text", "text": f"look {LONG}"}, image]},
        {"role": "assistant", "content": [{"type": "text", "text": "seen"}]},
    ]
    document = agent(api.base_url, contextMaxTokens=4000, memoryCompaction="summarize")
    async with load(tmp_path, document, store) as service:
        space = service.storage.space("user")
        await space.append("agent-memory/t", [json.dumps(entry).encode() for entry in entries])
        await talk(service, "short")
        assert [] == summaries(api)
        await talk(service, *(f"question {n} {LONG}" for n in range(8)))
    assert summaries(api)
    assert data not in json.dumps(summaries(api))


async def test_compaction_leaves_a_trace_record_and_the_summary_call_its_own(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.reply = summarizing("Short.")
    document = agent(api.base_url, contextMaxTokens=1200, memoryCompaction="summarize")
    lines: list[str] = []
    trace = Trace(lines.append, SystemClock())
    async with load(tmp_path, document) as service:
        for n in range(8):
            await service.invoke("chat", say(f"question {n} {LONG[:500]}"), trace=trace)
    records = [json.loads(line) for line in lines]
    compaction = next(r["attrs"] for r in records if r["kind"] == "agent.compaction")
    assert {"strategy", "before", "after", "dropped", "contextTokens", "iteration"} <= set(
        compaction
    )
    purposes = [r["attrs"].get("purpose") for r in records if r["kind"] == "llm.turn"]
    assert "memory-compaction" in purposes
    assert None in purposes


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
