"""`slack-reply`: show at once that an answer is coming."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from blocks.slack.posting import CallSettings, optional_key, post
from flowrt.connectors.slack.connector import SlackConnector
from flowrt.engine.block import Block
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import StoreError
from flowrt.expr import Expression
from flowrt.message import Message
from flowrt.observe.log import get_logger

PLACEHOLDER = ":thinking_face:"
LIFETIME = 48 * 3600.0
"""Seconds that a post may come again in, after its process was killed."""
_log = get_logger("flowrt.slack")

CHANNEL = "vars.slack.channel"
# In a channel an answer goes to the thread of what it answers; a direct message has none.
THREAD = (
    "vars.slack.threadTs != null ? vars.slack.threadTs : "
    "(vars.slack.isDirectMessage ? null : vars.slack.ts)"
)


class SlackReplySettings(CallSettings):
    """Settings of `slack-reply`."""

    text: Expr | None = Field(
        default=None, description=f"What to show until then; unset, {PLACEHOLDER}."
    )
    channel: Expr | None = Field(default=None, description=f"Where; unset, `{CHANNEL}`.")
    thread_ts: Expr | None = Field(
        default=None,
        description="The root of the thread to answer in; unset, that of `vars.slack`, and none "
        "in a direct message outside of a thread.",
    )
    result_var: str = Field(
        default="slackReply",
        min_length=1,
        description="The variable for the handle, `{channel, ts, threadTs}`.",
    )


class SlackReply(Block[SlackReplySettings]):
    """Posts a placeholder in answer to a Slack message; its handle is in `vars.slackReply`.

    `slack-reply-progress` lets it follow an agent, `slack-reply-finish` puts the answer in its
    place. The body passes unchanged.

    ```yaml
    - type: slack-reply
      connector: team
    ```
    """

    Settings = SlackReplySettings

    def __init__(self, settings: SlackReplySettings, site: Site) -> None:
        super().__init__(settings, site)
        self._address = site.address
        self._client = site.connector(
            settings.connector, SlackConnector, "a slack connector"
        ).client
        self._channel = settings.channel or Expression.compile(CHANNEL, scope=site.scope)
        self._thread = settings.thread_ts or Expression.compile(THREAD, scope=site.scope)

    async def run(self, message: Message, run: Run) -> Message:
        channel = self._channel.key(message, "slack-reply channel")
        thread = optional_key(self._thread, message)
        text = self.settings.text.text(message) if self.settings.text else PLACEHOLDER
        placeholder = _Placeholder(run, self._address, channel, thread or "")
        handle = await placeholder.before()
        if handle is None:
            channel, ts = await post(self._client, channel, [text], run.clock, thread_ts=thread)
            handle = {"channel": channel, "ts": ts, "threadTs": thread}
            await placeholder.keep(handle)
        message.set(self.settings.result_var, handle)
        return message


class _Placeholder:
    """What was posted for a message that may come again: its next run fills the same one."""

    def __init__(self, run: Run, *place: str) -> None:
        self._space = run.storage.space("system")
        mark = run.delivery.mark(*place) if run.delivery is not None else ""
        self._key = f"slack/placeholders/{mark}" if mark else ""

    async def before(self) -> dict[str, Any] | None:
        """The handle, where it was posted before."""
        stored = await self._space.get(self._key) if self._key else None
        return stored.value if stored is not None else None

    async def keep(self, handle: dict[str, Any]) -> None:
        if not self._key:
            return
        try:
            await self._space.set(self._key, handle, ttl=LIFETIME)
        except StoreError as error:
            # It is posted: failing now would leave it there for ever.
            _log.warning("a placeholder is not known to a later try", error=str(error))
