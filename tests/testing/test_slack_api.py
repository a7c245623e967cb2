"""The fake Slack: what it keeps, what it refuses, and that its events are signed as Slack's."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from flowrt.slack.signature import BadSignature, check_signature
from flowrt.testing import FakeSlackAPI, SlackEvents


async def call(slack: FakeSlackAPI, method: str, token: str = "", **arguments: Any) -> Any:
    """A call as a client makes it."""
    headers = {"authorization": f"Bearer {token or slack.token}"}
    async with httpx2.AsyncClient(base_url=slack.base_url, headers=headers) as client:
        return (await client.post(method, json=arguments)).json()


async def test_posts_are_kept_with_all_they_have_shown_and_whom_they_rang() -> None:
    with FakeSlackAPI() as slack:
        posted = await call(slack, "chat.postMessage", channel="U1", text="hi <@U1> <!here>")
        await call(slack, "chat.update", channel="D1", ts=posted["ts"], text="bye &lt;@U2&gt;")
    (post,) = slack.posts
    assert ("D1", "bye &lt;@U2&gt;", 2) == (post.channel, post.text, len(post.texts))
    assert ["@U1", "!here"] == post.mentions
    assert post is slack.post(posted["ts"])
    assert ["chat.postMessage", "chat.update"] == [method for method, _ in slack.calls]


@pytest.mark.parametrize(
    ("method", "arguments", "word"),
    [
        ("auth.test", {"token": "another"}, "invalid_auth"),
        ("chat.delete", {}, "unknown_method"),
        ("chat.postMessage", {"channel": "C1", "text": " "}, "no_text"),
        ("chat.postMessage", {"text": "x"}, "invalid_arguments"),
        ("chat.postMessage", {"channel": "C1", "text": "x" * 4001}, "msg_too_long"),
        ("chat.update", {"channel": "C1", "ts": "1.1", "text": "x"}, "message_not_found"),
        ("reactions.add", {"channel": "C1", "timestamp": "1", "name": ":x:"}, "invalid_name"),
        ("users.info", {"user": "U1"}, "user_not_found"),
        ("users.lookupByEmail", {"email": "x@y.z"}, "users_not_found"),
    ],
)
async def test_what_slack_refuses_is_refused_and_noted(
    method: str, arguments: dict[str, Any], word: str
) -> None:
    with FakeSlackAPI() as slack:
        answer = await call(slack, method, **arguments)
    assert {"ok": False, "error": word} == answer
    assert [f"{method}: {word}"] == slack.refused


async def test_a_scripted_failure_is_no_refusal_and_happens_once() -> None:
    with FakeSlackAPI() as slack:
        slack.add("auth.test", error="account_inactive")
        answers = [await call(slack, "auth.test") for _ in range(2)]
    assert ["account_inactive", None] == [answer.get("error") for answer in answers]
    assert [] == slack.refused


def test_events_are_signed_for_their_time_and_secret() -> None:
    events = SlackEvents("secret")
    body, headers = events.signed(events.mention("hi", thread_ts="1.1"), at=1000)
    sent = (headers["X-Slack-Request-Timestamp"], headers["X-Slack-Signature"], body)
    check_signature("secret", *sent, 1000)
    with pytest.raises(BadSignature):
        check_signature("another", *sent, 1000)


def test_two_events_are_never_the_same() -> None:
    events = SlackEvents()
    one, other = events.direct("hi"), events.direct("hi")
    assert one["event_id"] != other["event_id"]
    assert one["event"]["ts"] != other["event"]["ts"]
