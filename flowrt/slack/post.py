"""Whose post an event is about, and which conversation it belongs to."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from flowrt.slack.escaping import unescape

_POSTS = (None, "bot_message", "file_share", "me_message", "thread_broadcast")
"""The subtypes of a message that say that somebody has posted something."""


class Post(NamedTuple):
    """A post that an event of the type `message` or `app_mention` tells of.

    `thread_ts` is empty for one that is in no thread. `user` and `bot_id` are empty where there is
    none: bots may have either or both.
    """

    team: str
    channel: str
    user: str
    ts: str
    thread_ts: str
    text: str
    bot_id: str
    is_direct: bool
    is_mention: bool

    @property
    def key(self) -> str:
        """What tells it from every other post.

        Not the event's id: one post that mentions the app is two events, and an event may come
        twice.
        """
        return f"{self.team}/{self.channel}/{self.ts}"

    @property
    def thread_id(self) -> str:
        """The conversation, as a memory's key.

        A direct message belongs to the one conversation with that person. In a channel the root's
        time is the key, so that a mention and the thread it opens are one.
        """
        if self.is_direct:
            return f"slack:dm:{self.channel}"
        return f"slack:{self.channel}:{self.thread_ts or self.ts}"

    def variable(self, bot_user: str) -> dict[str, Any]:
        """The post as `vars.slack` has it; `text` is what was said, without calling the bot."""
        return {
            "team": self.team,
            "channel": self.channel,
            "user": self.user or None,
            "ts": self.ts,
            "threadTs": self.thread_ts or None,
            "threadId": self.thread_id,
            "isDirectMessage": self.is_direct,
            "mention": self.is_mention,
            "text": spoken(self.text, bot_user),
        }


def post_of(envelope: dict[str, Any], bot_user: str) -> Post | None:
    """The post in an `event_callback`; None where it tells of none that is new.

    Edits, deletions and notes such as "has joined" are no posts. `bot_user` is the user id of the
    app, which a mention names.
    """
    event = envelope.get("event")
    if not isinstance(event, dict) or event.get("type") not in ("message", "app_mention"):
        return None
    channel, ts = _text(event, "channel"), _text(event, "ts")
    if event.get("subtype") not in _POSTS or "edited" in event or not channel or not ts:
        return None
    text = _text(event, "text")
    named = bool(bot_user) and re.search(rf"<@{re.escape(bot_user)}(\|[^>]*)?>", text) is not None
    return Post(
        team=_text(envelope, "team_id") or _text(event, "team"),
        channel=channel,
        user=_text(event, "user"),
        ts=ts,
        thread_ts=_text(event, "thread_ts"),
        text=text,
        bot_id=_text(event, "bot_id"),
        is_direct=event.get("channel_type") == "im" or channel.startswith("D"),
        is_mention=named or event["type"] == "app_mention",
    )


def event_body(envelope: dict[str, Any]) -> dict[str, Any]:
    """The event as flows see it (dialect 4.6); fields that it lacks are null."""
    event = envelope.get("event")
    event = event if isinstance(event, dict) else {}
    return {
        "type": event.get("type"),
        "user": event.get("user"),
        "channel": event.get("channel"),
        "text": event.get("text"),
        "ts": event.get("ts"),
        "threadTs": event.get("thread_ts"),
        "botId": event.get("bot_id"),
        "teamId": envelope.get("team_id"),
        "eventId": envelope.get("event_id"),
        "raw": event,
    }


def spoken(text: str, bot_user: str) -> str:
    """What was said: without the mention of the bot, and with Slack's entities decoded."""
    if bot_user:
        text = re.sub(rf"\s*<@{re.escape(bot_user)}(\|[^>]*)?>\s*", " ", text)
    return unescape(text.strip())


def _text(table: dict[str, Any], name: str) -> str:
    value = table.get(name)
    return value if isinstance(value, str) else ""
