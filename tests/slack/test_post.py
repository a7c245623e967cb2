"""Whose post an event is about, and which conversation it belongs to (FB-74, FB-82)."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.slack.post import Post, event_body, post_of, spoken
from flowrt.testing import SlackEvents

events = SlackEvents()


def post(envelope: dict[str, Any]) -> Post:
    found = post_of(envelope, "UBOT")
    assert found is not None
    return found


def test_a_mention_and_the_message_of_the_same_post_are_one() -> None:
    mention = events.mention("hi", ts="1.1")
    message = events.message("<@UBOT> hi", ts="1.1")
    assert mention["event_id"] != message["event_id"]
    assert post(mention).key == post(message).key
    assert post(message).is_mention
    assert len({post(events.message("x", ts=ts, channel=c)).key for ts in "12" for c in "AB"}) == 4


def test_a_shared_channel_says_another_team_in_one_of_the_two() -> None:
    one, other = events.mention("hi", ts="1.1", team="T9"), events.message("hi", ts="1.1")
    assert post(one).key == post(other).key


@pytest.mark.parametrize(
    ("envelope", "thread"),
    [
        (events.mention("top", ts="1.1"), "slack:C1:1.1"),
        (events.message("reply in its thread", ts="2.2", thread_ts="1.1"), "slack:C1:1.1"),
        (events.mention("second at the top", ts="3.3"), "slack:C1:3.3"),
        (events.direct("hello", ts="4.4"), "slack:dm:D1"),
        (events.direct("in a thread", ts="5.5", thread_ts="4.4"), "slack:dm:D1"),
        (events.mention("in one of others", ts="6.6", thread_ts="0.9"), "slack:C1:0.9"),
        (events.message("group", channel="G1", channel_type="mpim", ts="7.7"), "slack:G1:7.7"),
    ],
)
def test_the_root_is_the_conversation_and_a_person_has_one(
    envelope: dict[str, Any], thread: str
) -> None:
    assert thread == post(envelope).thread_id


@pytest.mark.parametrize(
    "fields",
    [
        {"subtype": "message_changed"},
        {"subtype": "message_deleted"},
        {"subtype": "channel_join"},
        {"edited": {"user": "U1", "ts": "2"}},
        {"ts": 17.5},
        {"channel": None},
    ],
)
def test_what_is_no_new_post_is_none(fields: dict[str, Any]) -> None:
    assert post_of(events.message("x", **fields), "UBOT") is None
    assert post_of({"type": "event_callback"}, "UBOT") is None
    assert post_of({"event": {"type": "reaction_added"}}, "UBOT") is None


def test_the_text_is_what_was_said() -> None:
    assert "a < b & <@U2>" == spoken("<@UBOT> a &lt; b &amp; <@U2>", "UBOT")
    assert "&lt;" == spoken("&amp;lt;", "UBOT")
    assert "ask it" == spoken("ask <@UBOT|bot> it", "UBOT")


def test_an_event_has_every_field_and_null_for_what_it_lacks() -> None:
    body = event_body({"type": "event_callback", "event": {"type": "message"}})
    assert {
        "type",
        "user",
        "channel",
        "text",
        "ts",
        "threadTs",
        "botId",
        "teamId",
        "eventId",
        "raw",
    } == set(body)
    assert body["user"] is None
