"""The two bots of `samples/`, over HTTP, with a fake model and a fake Slack."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flowrt.service import Service
from flowrt.testing import FakeMessagesAPI, FakeSlackAPI, Gate
from tests.slack.app import App, serve
from tests.sources.web import HERE

SAMPLES = Path(__file__).parent.parent.parent / "samples"
BOTS = ["slack-bot.yaml", "slack-agent"]


@asynccontextmanager
async def bot(folder: Path, sample: str, replies: Iterable[Any] = ()) -> AsyncIterator[App]:
    """A sample, pointed at the fakes; `app.model` is the model's."""
    shutil.copytree(SAMPLES, folder / "samples")
    with FakeSlackAPI() as slack, FakeMessagesAPI(replies) as model:
        for path in (folder / "samples").glob("slack-*/service.yaml"):
            aim(path, slack.base_url)
        aim(folder / "samples/slack-bot.yaml", slack.base_url)
        environ = HERE | {
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": model.base_url,
            "SLACK_BOT_TOKEN": slack.token,
            "SLACK_SIGNING_SECRET": "a-signing-secret",
        }
        service = Service.load(
            folder / "samples" / sample, storage=f"sqlite:{folder}/state.db", environ=environ
        )
        async with serve(service, slack) as app:
            app.model = model
            yield app
    assert [] == model.refused
    assert [] == slack.refused


def aim(path: Path, base_url: str) -> None:
    """Have a sample call the fake Slack."""
    text = path.read_text(encoding="utf-8")
    text = text.replace("signingSecret: ", f"apiBaseURL: {base_url}\n      signingSecret: ")
    text = text.replace(f", apiBaseURL: {base_url}\n     ", f", apiBaseURL: {base_url},")
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("sample", BOTS)
async def test_a_mention_opens_a_thread_that_remembers(tmp_path: Path, sample: str) -> None:
    replies = ["Hello **Sam**, <!channel>.", "You are Sam."]
    async with bot(tmp_path, sample, replies) as app:
        first = app.events.mention("I am Sam.", ts="1.1")
        twin = app.events.message("<@UBOT> I am Sam.", ts="1.1")
        for event in (first, twin, first):
            assert app_ok(await app.send(event))
            await app.settle()
        assert app_ok(await app.send(app.events.mention("Who am I?", ts="1.2", thread_ts="1.1")))
        await app.settle()
    one, other = app.slack.posts
    assert (":thinking_face:", "Hello *Sam*, &lt;!channel&gt;.") == (one.texts[0], one.text)
    assert "You are Sam." == other.text
    assert ["1.1", "1.1"] == [one.thread_ts, other.thread_ts]
    assert [] == one.mentions
    assert 3 == len(app.model.bodies[1]["messages"])


def app_ok(answer: Any) -> bool:
    return answer.status_code in (200, 204)


@pytest.mark.parametrize("sample", BOTS)
async def test_what_slack_waits_for_is_not_the_model(tmp_path: Path, sample: str) -> None:
    gate = Gate()
    async with bot(tmp_path, sample, [{"text": "Late.", "hold": gate}]) as app:
        assert app_ok(await app.send(app.events.direct("hi")))
        await gate.reached()
        assert [":thinking_face:"] == app.texts
        gate.open()
        await app.settle()
        assert ["Late."] == app.texts


@pytest.mark.parametrize("sample", BOTS)
async def test_a_model_that_fails_is_told_in_the_placeholder(tmp_path: Path, sample: str) -> None:
    async with bot(tmp_path, sample, [{"error": 400}]) as app:
        assert app_ok(await app.send(app.events.direct("hi")))
        await app.settle()
    (post,) = app.slack.posts
    assert "Sorry, that went wrong." in post.text
    assert "400" not in "".join(post.texts)


@pytest.mark.parametrize("sample", BOTS)
async def test_an_own_post_and_a_forged_one_start_nothing(tmp_path: Path, sample: str) -> None:
    async with bot(tmp_path, sample) as app:
        assert app_ok(await app.send(app.events.direct("mine", user="UBOT", bot_id="BBOT")))
        body, headers = app.events.signed(app.events.direct("hi"))
        answer = await app.client.post("/slack/events", content=body + b" ", headers=headers)
        assert (401, False) == (answer.status_code, "HMAC" in answer.text)
        await app.settle()
    assert [] == app.slack.posts


async def test_many_threads_at_once_are_each_answered_once(tmp_path: Path) -> None:
    async with bot(tmp_path, "slack-bot.yaml") as app:
        app.model.reply = lambda body: f"{body['messages'][-1]['content'][0]['text']}!"
        events = [
            app.events.mention(
                f"{thread}.{number}", ts=f"{thread}.{number}", thread_ts=f"{thread}.0"
            )
            for number in range(1, 4)
            for thread in range(10)
        ]
        for event in events:
            await asyncio.gather(*(app.send(event) for _ in range(3)))
        await app.settle()
    assert sorted(f"{event['event']['ts']}!" for event in events) == sorted(app.texts)
    for thread in range(10):
        told = [post.text for post in app.slack.posts if post.thread_ts == f"{thread}.0"]
        assert [f"{thread}.{number}!" for number in range(1, 4)] == told


async def test_the_answer_grows_before_the_readers_eyes_and_is_not_overtaken(
    tmp_path: Path,
) -> None:
    gate = Gate()
    reply = {"text": "Soup, **bread** and <!here> salad.", "hold": gate, "holdAfter": 5}
    async with bot(tmp_path, "slack-bot.yaml", [reply]) as app:
        await app.send(app.events.direct("What is for lunch?"))
        await gate.reached()
        async with asyncio.timeout(10):
            while not app.slack.called("chat.update"):
                await asyncio.sleep(0)
        gate.open()
        await app.settle()
    (post,) = app.slack.posts
    assert post.texts[1].endswith(" …")
    assert "Soup, *bread* and &lt;!here&gt; salad." == post.text
    assert [] == post.mentions
