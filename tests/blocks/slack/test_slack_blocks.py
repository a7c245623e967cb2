"""The blocks of Slack: one call each, in a flow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.service import Result
from flowrt.testing import FakeSlackAPI, SlackEvents
from tests.services import flows, load
from tests.slack.app import connector

SLACK = {"channel": "C1", "ts": "1.1", "threadTs": None, "isDirectMessage": False}
JIM = {"id": "U7", "name": "jim", "tz": "Europe/Lisbon", "profile": {"email": "j@x.org"}}


async def run(
    folder: Path, slack: FakeSlackAPI, /, *chain: dict[str, Any], data: Any = None, **variables: Any
) -> Result:
    """Send `data` through a chain whose blocks act as the fake's app; `raw` marks raw content."""
    raw = variables.pop("raw", False)
    blocks = [{"connector": "team", **block} for block in chain]
    for block in blocks:
        if block["type"] == "slack-event":
            del block["connector"]
    document = flows(main=blocks) | {"connectors": [connector(slack.base_url)]}
    async with load(folder, document) as service:
        return await service.invoke("main", data, variables, raw=raw)


def variables(result: Result) -> dict[str, Any]:
    assert result.message is not None, result.error
    return dict(result.message.vars)


SEND = {"type": "slack-send-message", "target": '"C1"', "text": "body"}
UPDATE = {
    "type": "slack-update-message",
    "channel": "vars.slackChannel",
    "timestamp": "vars.slackTs",
    "text": '"done"',
}


async def test_a_message_is_posted_and_edited(tmp_path: Path) -> None:
    with FakeSlackAPI() as slack:
        result = await run(tmp_path, slack, SEND, UPDATE, data="working")
    (post,) = slack.posts
    assert ("C1", ["working", "done"], None) == (post.channel, post.texts, post.thread_ts)
    assert {"slackChannel": "C1", "slackTs": post.ts} == variables(result)
    assert result.message is not None
    assert "working" == result.message.body


async def test_a_message_to_a_person_is_in_the_channel_that_slack_says(tmp_path: Path) -> None:
    with FakeSlackAPI() as slack:
        result = await run(tmp_path, slack, SEND | {"target": '"U7"'}, UPDATE, data="x")
    assert "D7" == variables(result)["slackChannel"]
    assert "done" == slack.posts[0].text


@pytest.mark.parametrize("size", [3_001, 4_001, 45_000])
async def test_what_is_too_long_goes_on_in_the_thread_in_order(tmp_path: Path, size: int) -> None:
    text = "".join(f"{number:06} " for number in range(size // 7 + 1))
    with FakeSlackAPI() as slack:
        await run(tmp_path, slack, SEND, data=text)
        await run(tmp_path, slack, SEND | {"target": '"D1"'}, data=text)
    assert [] == slack.refused
    channel = [post for post in slack.posts if post.channel == "C1"]
    assert text.split() == " ".join(post.text for post in channel).split()
    assert {channel[0].ts} >= {post.thread_ts for post in channel[1:]}
    assert {None} == {post.thread_ts for post in slack.posts if post.channel == "D1"}


async def test_authors_write_slacks_markup_and_what_others_wrote_is_defused(tmp_path: Path) -> None:
    text = "**hi** <!channel> <@U1> <@U2>"
    with FakeSlackAPI() as slack:
        for more in (
            {},
            {"format": "markdown"},
            {"format": "plain"},
            {"format": "markdown", "allowMentions": ["U1"]},
        ):
            await run(tmp_path, slack, SEND | more, data=text)
    asis, markdown, plain, allowed = slack.posts
    assert text == asis.text
    assert "*hi* &lt;!channel&gt; &lt;@U1&gt; &lt;@U2&gt;" == markdown.text
    assert "**hi** &lt;!channel&gt; &lt;@U1&gt; &lt;@U2&gt;" == plain.text
    assert ["@U1"] == allowed.mentions


async def test_blocks_and_a_thread(tmp_path: Path) -> None:
    chain = SEND | {"blocks": '[{"type": "divider"}]', "threadTs": '"1.1"', "text": '"notice"'}
    with FakeSlackAPI() as slack:
        await run(tmp_path, slack, chain)
    assert ([{"type": "divider"}], "1.1") == (slack.posts[0].blocks, slack.posts[0].thread_ts)


async def test_a_refusal_fails_the_flow_unless_it_is_to_go_on(tmp_path: Path) -> None:
    with FakeSlackAPI() as slack:
        slack.add("chat.postMessage", error="not_in_channel")
        slack.add("chat.postMessage", error="is_archived")
        failed = await run(tmp_path, slack, SEND, data="x")
        went_on = await run(tmp_path, slack, SEND | {"failOnError": False}, data="x")
        fine = await run(tmp_path, slack, SEND | {"failOnError": False}, data="x")
    assert "slack chat.postMessage said 'not_in_channel'" in str(failed.error)
    assert {"slackError": "is_archived"} == variables(went_on)
    assert variables(fine)["slackError"] is None


@pytest.mark.parametrize(
    ("block", "data"),
    [
        (SEND, ""),
        (SEND | {"target": "null"}, "x"),
        (SEND | {"threadTs": "1700000000.0001"}, "x"),
        (SEND | {"blocks": "body"}, "x"),
        (UPDATE | {"channel": '""'}, "x"),
    ],
)
async def test_what_cannot_be_sent_is_an_error_before_slack_is_asked(
    tmp_path: Path, block: dict[str, Any], data: str
) -> None:
    with FakeSlackAPI() as slack:
        result = await run(tmp_path, slack, block, data=data)
    assert result.error is not None
    assert [] == slack.calls


async def test_a_reaction_that_is_there_already_is_fine(tmp_path: Path) -> None:
    react = {
        "type": "slack-add-reaction",
        "channel": "vars.slackChannel",
        "timestamp": "vars.slackTs",
        "emoji": '":eyes:"',
    }
    with FakeSlackAPI() as slack:
        result = await run(tmp_path, slack, SEND, react, react, data="x")
        bad = await run(tmp_path, slack, SEND, react | {"emoji": '"No Emoji"'}, data="x")
    assert result.error is None
    assert ["eyes"] == slack.posts[0].reactions
    assert "invalid_name" in str(bad.error)


async def test_a_user_is_found_by_id_and_by_address(tmp_path: Path) -> None:
    lookup = {"type": "slack-lookup-user"}
    with FakeSlackAPI(users={"U7": JIM}) as slack:
        by_id = await run(tmp_path, slack, lookup | {"by": "id", "user": '"U7"'})
        by_email = await run(
            tmp_path, slack, lookup | {"email": "body", "resultVar": "who"}, data="j@x.org"
        )
        nobody = await run(tmp_path, slack, lookup | {"user": '"U8"', "failOnError": False})
        failed = await run(tmp_path, slack, lookup | {"user": '"U8"'})
    assert JIM == variables(by_id)["slackUser"]
    assert JIM == variables(by_email)["who"]
    assert {"slackUser": None, "slackError": "user_not_found"} == variables(nobody)
    assert failed.error is not None


async def test_a_reply_is_a_placeholder_and_then_the_answer(tmp_path: Path) -> None:
    chain = [{"type": "slack-reply"}, {"type": "slack-reply-finish"}]
    long = "**" + "word " * 1000 + "**"
    with FakeSlackAPI() as slack:
        result = await run(tmp_path, slack, *chain, data="**Yes** <!here>", slack=SLACK)
        await run(tmp_path, slack, *chain, data=long, slack=SLACK)
        await run(tmp_path, slack, *chain, data="", slack=SLACK)
    first, second, rest, empty = slack.posts
    assert [":thinking_face:", "*Yes* &lt;!here&gt;"] == first.texts
    assert {"channel": "C1", "ts": first.ts, "threadTs": "1.1"} == variables(result)["slackReply"]
    assert ["1.1", "1.1"] == [second.thread_ts, rest.thread_ts]
    assert 1000 == (second.text + " " + rest.text).count("word")
    assert "_(no answer)_" == empty.text


async def test_a_reply_cannot_be_finished_before_it_began(tmp_path: Path) -> None:
    with FakeSlackAPI() as slack:
        result = await run(tmp_path, slack, {"type": "slack-reply-finish"}, data="x")
    assert "put slack-reply first" in str(result.error)


events = SlackEvents()
VERIFY = {"type": "slack-verify-request"}


async def test_a_signed_request_passes(tmp_path: Path) -> None:
    body, headers = events.signed({"type": "url_verification", "challenge": "c"})
    text = body.decode()
    with FakeSlackAPI() as slack:
        by_variable = await run(
            tmp_path, slack, VERIFY, data=json.loads(body), rawBody=text, **headers
        )
        content = {"contentType": "application/json", "rawData": text}
        by_content = await run(tmp_path, slack, VERIFY, data=content, raw=True, **headers)
    assert variables(by_variable)["slackChallenge"] is True
    assert by_content.message is not None
    assert {"type": "url_verification", "challenge": "c"} == by_content.message.body
    assert not by_content.message.raw


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"rawBody": "{ }"}, "not that of this body"),
        ({"rawBody": None}, "rawBodyVar: rawBody"),
        ({"X-Slack-Signature": ""}, "X-Slack-Signature is missing"),
        ({"X-Slack-Request-Timestamp": None}, "X-Slack-Request-Timestamp is missing"),
    ],
)
async def test_what_is_not_signed_fails_the_flow(
    tmp_path: Path, given: dict[str, Any], text: str
) -> None:
    body, headers = events.signed({})
    with FakeSlackAPI() as slack:
        result = await run(
            tmp_path, slack, VERIFY, data={}, **(headers | {"rawBody": body.decode()} | given)
        )
    assert text in str(result.error)


async def test_a_stale_request_says_how_stale(tmp_path: Path) -> None:
    body, headers = events.signed({}, at=1_700_000_000)
    with FakeSlackAPI() as slack:
        result = await run(tmp_path, slack, VERIFY, data={}, rawBody=body.decode(), **headers)
    assert "behind this machine's clock" in str(result.error)


async def test_an_event_becomes_the_body_and_others_are_dropped(tmp_path: Path) -> None:
    mention = {"type": "slack-event", "eventTypes": ["app_mention"], "filter": "body.botId == null"}
    envelope = events.mention("hi", ts="1.1", thread_ts="0.9")
    with FakeSlackAPI() as slack:
        taken = await run(tmp_path, slack, mention, data=envelope)
        for other in (
            events.message("x"),
            events.mention("x", bot_id="B2"),
            {"type": "url_verification"},
            "text",
        ):
            assert (await run(tmp_path, slack, mention, data=other)).message is None
    assert taken.message is not None
    assert ("1.1", "0.9", "T1", None) == tuple(
        taken.message.body[key] for key in ("ts", "threadTs", "teamId", "botId")
    )


def test_what_cannot_work_is_refused_at_load(tmp_path: Path) -> None:
    def refusal(block: dict[str, Any], **settings: Any) -> str:
        team = connector()
        team["settings"] |= settings
        document = flows(main=[{"connector": "team"} | block]) | {"connectors": [team]}
        with pytest.raises(ConfigError) as caught:
            load(tmp_path, document)
        return str(caught.value)

    assert "needs `text` or `blocks`" in refusal({"type": "slack-send-message", "target": '"C"'})
    assert "by email needs `email`" in refusal({"type": "slack-lookup-user", "by": "email"})
    assert "is not configured" in refusal(VERIFY | {"connector": "tem"})
    assert "expected an http or https URL" in refusal(VERIFY, apiBaseURL="slack.com")
    assert "signingSecret" in refusal(VERIFY, signingSecret=None)
