"""The source `slack`: what people say, once, at once, and nobody else (FB-73, 74, 76, 77, 82)."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError, ConnectorError
from flowrt.slack.signature import SIGNATURE_HEADER, TIMESTAMP_HEADER
from flowrt.testing import FakeSlackAPI, SlackEvents
from tests.services import load
from tests.slack.app import ECHO, bot, running, serve
from tests.sources.gate import GATE, Gate
from tests.sources.web import HERE

SHOW = [
    {
        "type": "slack-send-message",
        "connector": "team",
        "target": '"C9"',
        "text": "toJson(vars.slack)",
    }
]


async def test_an_event_is_acknowledged_before_the_flow_has_ended(tmp_path: Path) -> None:
    Gate.opened = asyncio.Event()
    async with running(tmp_path, GATE, *ECHO) as app:
        event = app.events.mention("hi")
        assert 200 == (await app.send(event)).status_code
        assert 200 == (await app.send(event, {"X-Slack-Retry-Num": "1"})).status_code
        assert 200 == (await app.send(event)).status_code
        assert [] == app.slack.posts
        Gate.opened.set()
        await app.settle()
        assert ["hi"] == app.texts
        assert 200 == (await app.send(event, {"X-Slack-Retry-Num": "3"})).status_code
        await app.settle()
    assert ["hi"] == app.texts


async def test_a_retry_whose_first_delivery_never_came_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path) as app:
        await app.send(app.events.direct("hi"), {"X-Slack-Retry-Num": "1"})
        await app.settle()
    assert ["hi"] == app.texts


async def test_a_mention_is_two_events_and_one_run(tmp_path: Path) -> None:
    async with running(tmp_path) as app:
        mention = app.events.mention("hi", ts="1.1")
        message = app.events.message("<@UBOT> hi", ts="1.1")
        await asyncio.gather(*(app.send(event) for event in (mention, message) * 10))
        await app.settle()
    assert ["hi"] == app.texts


async def test_a_post_is_not_answered_again_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'state.db'}"
    events = SlackEvents()
    for _ in range(2):
        async with running(tmp_path, storage=store) as app:
            await app.send(events.direct("hi", ts="1.1"))
            await app.settle()
            texts = app.texts
    assert [] == texts


async def test_two_replicas_answer_a_post_once(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'state.db'}"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with (
        running(tmp_path / "a", storage=store) as one,
        running(tmp_path / "b", storage=store) as other,
    ):
        for number in range(20):
            event = one.events.direct("hi", ts=f"{number}.1")
            await asyncio.gather(one.send(event), other.send(event))
        await one.settle()
        await other.settle()
        assert 20 == len(one.texts) + len(other.texts)


async def test_what_a_post_says_of_itself(tmp_path: Path) -> None:
    async with running(tmp_path, *SHOW) as app:
        await app.send(app.events.mention("is a &lt; b?", ts="1.1", thread_ts="0.9"))
        await app.settle()
        await app.send(app.events.direct("hello", ts="2.2"))
        await app.settle()
    assert {
        "team": "T1",
        "channel": "C1",
        "user": "U1",
        "ts": "1.1",
        "threadTs": "0.9",
        "threadId": "slack:C1:0.9",
        "isDirectMessage": False,
        "mention": True,
        "text": "is a < b?",
    } == json.loads(app.texts[0])
    told = json.loads(app.texts[1])
    assert ("slack:dm:D1", True, None) == (
        told["threadId"],
        told["isDirectMessage"],
        told["threadTs"],
    )


async def test_answers_go_to_the_thread_of_the_question_and_none_in_a_direct_message(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as app:
        for event in (
            app.events.mention("top", ts="1.1"),
            app.events.mention("in a thread", ts="2.2", thread_ts="1.1"),
            app.events.direct("direct", ts="3.3"),
        ):
            await app.send(event)
            await app.settle()
    assert ["1.1", "1.1", None] == [post.thread_ts for post in app.slack.posts]


async def test_a_thread_that_a_mention_has_opened_goes_on_without_one(tmp_path: Path) -> None:
    async with running(tmp_path) as app:
        await app.send(app.events.message("not for you", ts="1.0"))
        await app.send(app.events.message("nor this", ts="1.05", thread_ts="1.0"))
        await app.send(app.events.mention("hi", ts="1.1"))
        await app.settle()
        await app.send(app.events.message("and then", ts="1.2", thread_ts="1.1"))
        await app.settle()
        await app.send(
            app.events.message("to what the app began", thread_ts="0.5", parent_user_id="UBOT")
        )
        await app.settle()
        await app.send(app.events.mention("in one of others", thread_ts="0.7"))
        await app.settle()
        await app.send(app.events.message("not for you", thread_ts="0.7"))
        await app.settle()
    assert ["hi", "and then", "to what the app began", "in one of others"] == app.texts


async def test_all_is_everything_in_its_channels(tmp_path: Path) -> None:
    async with running(tmp_path, respondTo="all") as app:
        await app.send(app.events.message("whoever listens"))
        await app.settle()
    assert ["whoever listens"] == app.texts


def others(events: SlackEvents) -> list[dict[str, Any]]:
    """What must start nothing."""
    return [
        events.direct("mine", bot_id="BBOT"),
        events.direct("mine", user="UBOT"),
        events.mention("of another bot", bot_id="B2", user="U2"),
        events.direct("of another bot", bot_id="B2", subtype="bot_message"),
        events.direct("of slackbot", user="USLACKBOT"),
        events.direct("edited", subtype="message_changed", message={"text": "x"}),
        events.direct("gone", subtype="message_deleted"),
        events.mention("edited", edited={"user": "U1", "ts": "9"}),
        events.direct("joined", subtype="channel_join"),
        {"type": "event_callback", "event": {"type": "reaction_added", "user": "U1"}},
        {"type": "event_callback", "event": None},
        {"type": "app_rate_limited"},
        {},
    ]


async def test_own_posts_other_bots_edits_and_deletions_start_nothing(tmp_path: Path) -> None:
    """FB-76."""
    async with running(tmp_path, respondTo="all") as app:
        for event in others(app.events):
            assert 200 == (await app.send(event)).status_code
        await app.settle()
    assert [] == app.texts


async def test_other_bots_get_a_few_turns_in_a_thread_where_they_are_asked_for(
    tmp_path: Path,
) -> None:
    """FB-76."""
    async with running(tmp_path, bots=True, maxBotTurns=2) as app:
        await app.send(app.events.mention("mine", bot_id="BBOT"))

        async def say(text: str, **fields: Any) -> None:
            await app.send(app.events.mention(text, thread_ts="1.1", **fields))
            await app.settle()

        for number in range(4):
            await say(f"bot {number}", bot_id="B2", user="U2")
        await say("a person")
        await say("bot again", bot_id="B2", user="U2")
    assert ["bot 0", "bot 1", "a person", "bot again"] == app.texts


async def test_the_address_is_verified_with_the_challenge(tmp_path: Path) -> None:
    async with running(tmp_path) as app:
        answer = await app.send({"type": "url_verification", "challenge": "3eZbrw"})
    assert (200, "3eZbrw") == (answer.status_code, answer.text)


async def test_what_slack_has_not_signed_is_refused_before_it_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(tmp_path) as app:
        body, headers = app.events.signed(app.events.direct("hi"))
        old = app.events.signed(body, at=1_700_000_000)[1]
        forged = [
            (body + b" ", headers),
            (body, headers | {SIGNATURE_HEADER: headers[SIGNATURE_HEADER].upper()}),
            (body, headers | {TIMESTAMP_HEADER: "1700000000"}),
            (body, {"content-type": "application/json"}),
            (b"\xff not json", headers),
            (body, old),
        ]
        for content, sent in forged:
            answer = await app.client.post("/slack/events", content=content, headers=sent)
            assert 401 == answer.status_code
            assert "Traceback" not in answer.text
        await app.settle()
    assert [] == app.texts
    told = capsys.readouterr().err
    assert "are not signed by Slack" in told
    assert '"skew": -' in told


@pytest.mark.parametrize("first", ["v0=" + "0" * 64, ""])
async def test_two_signatures_are_none(tmp_path: Path, first: str) -> None:
    """A check in front may have looked at the other one."""
    async with running(tmp_path) as app:
        body, headers = app.events.signed(app.events.direct("hi"))
        both = [*headers.items(), (SIGNATURE_HEADER, first), (SIGNATURE_HEADER, first)]
        for sent in (both, both[::-1]):
            answer = await app.client.post("/slack/events", content=body, headers=sent)
            assert 401 == answer.status_code
        await app.settle()
    assert [] == app.texts


@pytest.mark.parametrize("body", [b"\xff", b"{", b"[]", b"", b'{"a": NaN}', b"[" * 100_000])
async def test_what_is_signed_and_no_event_is_a_bad_request(body: bytes, tmp_path: Path) -> None:
    async with running(tmp_path) as app:
        answer = await app.send(body)
    assert 400 == answer.status_code
    assert set(answer.json()) == {"error"}


async def test_where_there_is_no_room_slack_is_to_send_it_again(tmp_path: Path) -> None:
    Gate.opened = asyncio.Event()
    async with running(tmp_path, GATE, *ECHO, flow={"workers": 1, "buffer": 1}) as app:
        events = [app.events.direct(f"{number}", channel=f"D{number}") for number in range(3)]
        statuses = [(await app.send(event)).status_code for event in events]
        assert [200, 200, 503] == statuses
        Gate.opened.set()
        await app.settle()
        assert 200 == (await app.send(events[2])).status_code
        await app.settle()
    assert ["0", "1", "2"] == app.texts


async def test_where_the_store_is_away_slack_is_to_send_it_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    async with running(tmp_path, storage=f"sqlite:{tmp_path}/file/state.db") as app:
        answer = await app.send(app.events.direct("hi"))
        await app.settle()
    assert (503, "1") == (answer.status_code, answer.headers["retry-after"])
    assert [] == app.texts


async def test_a_flow_that_fails_is_logged_and_not_answered_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(tmp_path, {"type": "set-payload", "value": "body.nothing.there"}) as app:
        event = app.events.direct("hi")
        for _ in range(2):
            assert 200 == (await app.send(event)).status_code
            await app.settle()
    assert 1 == capsys.readouterr().err.count("a slack post failed")


async def test_the_service_does_not_start_with_a_token_that_slack_refuses(tmp_path: Path) -> None:
    with FakeSlackAPI(token="another") as slack:
        service = load(tmp_path, bot(slack.base_url), environ=HERE)
        with pytest.raises(ConnectorError, match=r"auth\.test said 'invalid_auth'"):
            await service.start(sources=True)
        await service.stop()


async def test_it_can_be_started_again(tmp_path: Path) -> None:
    with FakeSlackAPI() as slack:
        service = load(tmp_path, bot(slack.base_url), environ=HERE)
        for number in range(2):
            async with serve(service, slack) as app:
                await app.send(app.events.direct(f"{number}", ts=f"{number}.1"))
                await app.settle()
        assert ["0", "1"] == app.texts


class Later:
    """A clock that is ten minutes ahead."""

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(minutes=10)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


async def test_a_request_that_is_replayed_later_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, clock=Later()) as app:
        answer = await app.send(app.events.direct("hi"))
    assert (401, True) == (answer.status_code, "behind this machine's clock" in answer.text)


def refusal(folder: Path, document: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, document)
    return str(caught.value)


def test_what_cannot_work_is_refused_at_load(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/"
    unsigned = bot(url)
    del unsigned["connectors"][0]["settings"]["signingSecret"]
    assert "needs a signing secret, connector 'team' has none" in refusal(tmp_path, unsigned)
    assert 'connector "x" is not an http' in refusal(tmp_path, bot(url, http="x"))
    several = bot(url)
    several["connectors"] += [{"name": name, "type": "http"} for name in ("a", "b")]
    assert "name one of them with `http:`: a, b" in refusal(tmp_path, several)
    two = bot(url)
    two["flows"].append(two["flows"][0] | {"name": "other"})
    assert "another flow has POST at /slack/events" in refusal(tmp_path, two)
    bare = bot(url) | {"connectors": []}
    bare["flows"][0]["process"] = []
    assert "declare one under `connectors:`, with botToken" in refusal(tmp_path, bare)
    chosen = bot(url, http="b")
    chosen["connectors"] += [{"name": name, "type": "http"} for name in ("a", "b")]
    assert load(tmp_path, chosen).flows
