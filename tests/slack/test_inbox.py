"""Posts that Slack was told about, and a process that is killed before it has answered them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from flowrt.testing import FakeMessagesAPI, FakeReply, FakeSlackAPI, SlackEvents
from flowrt.testing.replies import Gate
from tests.cli.running import Running, write
from tests.services import agent
from tests.slack.app import bot, running

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def remembering(slack: str, model: str, **flow: Any) -> dict[str, Any]:
    """A bot with a placeholder and a memory, one post at a time."""
    chat = agent(model, input="vars.slack.text", memoryThreadId="vars.slack.threadId", tools=[])
    chain = [
        {"type": "slack-reply", "connector": "team"},
        chat["flows"][0]["process"][0],
        {"type": "slack-reply-finish", "connector": "team", "text": "body"},
    ]
    document = bot(slack, *chain, flow={"workers": 1, **flow})
    document["connectors"] += chat["connectors"]
    return document


async def post(url: str, events: SlackEvents, text: str) -> int:
    body, headers = events.signed(events.direct(text))
    async with httpx2.AsyncClient(timeout=20) as client:
        answer = await client.post(f"{url}/slack/events", content=body, headers=headers)
    return answer.status_code


async def shown(slack: FakeSlackAPI, *texts: str) -> None:
    async with asyncio.timeout(30):
        while list(texts) != [each.text for each in slack.posts]:
            await asyncio.sleep(0.01)


async def test_what_a_killed_process_had_taken_the_next_one_answers(tmp_path: Path) -> None:
    """FB-53. The placeholder that it had posted is filled, and each question is asked once."""
    gate, events = Gate(), SlackEvents()
    with (
        FakeSlackAPI() as slack,
        FakeMessagesAPI([FakeReply(text="Lost.", hold=gate), "One.", "Two."]) as api,
    ):
        write(tmp_path, remembering(slack.base_url, api.base_url))
        options = ("--storage", f"sqlite:{tmp_path}/s.db")
        with Running(tmp_path, *options) as first:
            url, _ = first.serving()
            assert [200, 200] == [await post(url, events, text) for text in ("1?", "2?")]
            await gate.reached()
        gate.open()
        with Running(tmp_path, *options) as second:
            second.serving()
            await shown(slack, "One.", "Two.")
            second.signal()
            assert 0 == await asyncio.to_thread(second.ended)
    asked = [message["content"][0]["text"] for message in api.requests[-1].messages]
    assert ["1?", "One.", "2?"] == asked
    told = [line for line in second.lines if line["event"].startswith("a post of a process")]
    assert 2 == len(told)


async def test_a_process_leaves_alone_what_another_one_works(tmp_path: Path) -> None:
    """Two on one file: the second one's start answers nothing that the first one has."""
    gate, events = Gate(), SlackEvents()
    with (
        FakeSlackAPI() as slack,
        FakeMessagesAPI([FakeReply(text="One.", hold=gate)]) as api,
    ):
        write(tmp_path, remembering(slack.base_url, api.base_url))
        options = ("--storage", f"sqlite:{tmp_path}/s.db")
        with Running(tmp_path, *options) as first:
            url, _ = first.serving()
            await post(url, events, "1?")
            await gate.reached()
            with Running(tmp_path, *options) as second:
                second.serving()
                second.signal()
                assert 0 == await asyncio.to_thread(second.ended)
            gate.open()
            await shown(slack, "One.")
    assert 1 == len(api.requests)


async def test_what_is_cut_off_at_the_end_is_answered_after_the_start(tmp_path: Path) -> None:
    gate, events = Gate(), SlackEvents()
    with (
        FakeSlackAPI() as slack,
        FakeMessagesAPI([FakeReply(text="Lost.", hold=gate), "One."]) as api,
    ):
        write(tmp_path, remembering(slack.base_url, api.base_url))
        options = ("--storage", f"sqlite:{tmp_path}/s.db", "--grace", "100ms")
        with Running(tmp_path, *options) as first:
            url, _ = first.serving()
            await post(url, events, "1?")
            await gate.reached()
            first.signal()
            assert 0 == await asyncio.to_thread(first.ended)
        gate.open()
        with Running(tmp_path, *options) as second:
            second.serving()
            await shown(slack, "One.")


async def test_what_was_answered_is_in_no_inbox(tmp_path: Path) -> None:
    async with running(tmp_path, storage=f"sqlite:{tmp_path}/s.db") as app:
        for text in "abc":
            await app.send(app.events.direct(text))
        await app.settle()
        page = await app.service.storage.space("system").scan("slack/inbox/")
        assert [] == page.keys
        assert ["a", "b", "c"] == sorted(app.texts)
