"""What the blocks that write to Slack share: from settings to texts, from texts to messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from flowrt.clock import Clock
from flowrt.connectors.slack.client import SlackClient, SlackFailure
from flowrt.engine.block import Settings
from flowrt.engine.fields import Expr
from flowrt.errors import FlowError
from flowrt.message import Message
from flowrt.observe.log import get_logger
from flowrt.slack.escaping import escape_but
from flowrt.slack.mrkdwn import to_mrkdwn
from flowrt.slack.splitting import split

_log = get_logger("flowrt.slack")

Format = Literal["mrkdwn", "markdown", "plain"]


class CallSettings(Settings):
    """Settings of every block that calls Slack."""

    connector: str = Field(min_length=1, description="The `slack` connector.")


class MentionSettings(CallSettings):
    """Settings of every block that writes what somebody else may have made up."""

    allow_mentions: list[str] = Field(
        default=[],
        description="Who a text in `markdown` or `plain` may mention: ids such as `U123`, "
        "`channel`, `here`, `everyone`, or `users` for every user.",
    )


class WritingSettings(MentionSettings):
    """Settings of the blocks that write a text or blocks."""

    text: Expr | None = Field(default=None, description="The text; with `blocks`, for notices.")
    format: Format = Field(
        default="mrkdwn",
        description="What the text is: Slack's own markup, taken as it is, mentions too; Markdown, "
        "as models write it; or plain text.",
    )
    blocks: Expr | None = Field(default=None, description="A list of Block Kit blocks.")
    fail_on_error: bool = Field(
        default=True,
        description="Fail where Slack refuses; else `vars.slackError` says why, null where not.",
    )


def rendered(text: str, format_: Format, allowed: Sequence[str]) -> str:
    """A text as Slack's markup."""
    if format_ == "markdown":
        return to_mrkdwn(text, allowed)
    return escape_but(text, allowed) if format_ == "plain" else text


def parts_of(settings: WritingSettings, message: Message) -> list[str]:
    """The text in parts that Slack takes; none where there is no text."""
    if settings.text is None:
        return []
    text = rendered(settings.text.text(message), settings.format, settings.allow_mentions)
    return split(text) if text.strip() else []


def blocks_of(settings: WritingSettings, message: Message) -> list[Any] | None:
    """The blocks, if the file gives some. Raises `FlowError` where they are no list."""
    if settings.blocks is None:
        return None
    value = settings.blocks.value(message)
    if not isinstance(value, list):
        raise FlowError(f"blocks must be a list, found {type(value).__name__}")
    return value


def optional_key(expression: Expr | None, message: Message) -> str | None:
    """A text that may be absent, null or empty, such as a thread's time."""
    value = expression.value(message) if expression is not None else None
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        # 1700000000.000100 read as a number has lost its last digits.
        raise FlowError(f"a thread's time is a text, found {type(value).__name__} {value!r}")
    return value


async def post(
    client: SlackClient,
    channel: str,
    parts: Sequence[str],
    clock: Clock,
    *,
    thread_ts: str | None = None,
    blocks: list[Any] | None = None,
) -> tuple[str, str]:
    """Post parts in order, the channel and time of the first of them.

    Those that follow a post in a channel go to its thread. Raises `SlackFailure`.
    """
    first: tuple[str, str] | None = None
    for text in parts or [""]:
        answer = await client.call(
            "chat.postMessage",
            {
                "channel": channel,
                "text": text or None,
                "thread_ts": thread_ts,
                "blocks": blocks if first is None else None,
                "unfurl_links": False if len(parts) > 1 else None,
            },
            clock,
        )
        if first is None:
            first = (answer["channel"], answer["ts"])
            channel = answer["channel"]
            if not channel.startswith("D"):
                thread_ts = thread_ts or answer["ts"]
    assert first is not None
    return first


async def edit(
    client: SlackClient,
    channel: str,
    ts: str,
    parts: Sequence[str],
    clock: Clock,
    *,
    thread_ts: str | None = None,
    blocks: list[Any] | None = None,
) -> None:
    """Put the first part in place of a message's text; the others follow it. May raise
    `SlackFailure`."""
    await client.call(
        "chat.update",
        {
            "channel": channel,
            "ts": ts,
            "text": parts[0] if parts else None,
            "blocks": blocks,
            # Unlike chat.postMessage it would look for @names and #channels by itself.
            "parse": "none",
        },
        clock,
    )
    if len(parts) > 1:
        thread = thread_ts or (None if channel.startswith("D") else ts)
        await post(client, channel, parts[1:], clock, thread_ts=thread)


def tolerate(failure: SlackFailure, message: Message) -> None:
    """Go on after a refusal, and say what it was."""
    _log.warning("slack refused a call; the flow goes on", error=str(failure))
    message.set("slackError", failure.code)
