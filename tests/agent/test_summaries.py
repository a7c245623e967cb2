"""Summaries: what stands in for what was forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.clock import SystemClock
from flowrt.observe.trace import Trace
from flowrt.testing import FakeMessagesAPI
from flowrt.testing.messages_tokens import count_request as count_tokens
from flowrt.testing.replies import FakeReply
from tests.agent.compacting import (
    LONG,
    Listener,
    is_summary_request,
    summaries,
    summarizing,
    talk,
    turns,
)
from tests.services import agent, load, say, texts


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


async def test_a_summary_in_the_place_of_a_single_message_is_stored(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.reply = summarizing("One long question was asked.", "fine")
    document = agent(api.base_url, contextMaxTokens=600, memoryCompaction="summarize")
    question = {"role": "user", "content": [{"type": "text", "text": LONG * 3}]}
    async with load(tmp_path, document, f"sqlite:{tmp_path}/s.db") as service:
        space = service.storage.space("user")
        await space.append("agent-memory/t", [json.dumps(question).encode()])
        await talk(service, "short")
        log = await space.read_log("agent-memory/t")
    assert log is not None
    kinds = [json.loads(entry).get("kind", "message") for entry in log.entries]
    assert ["summary", "message", "message"] == kinds
    assert 3 == len(summaries(api))  # one summary, of 3,000 characters in parts of 1,024
