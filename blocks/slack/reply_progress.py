"""`slack-reply-progress`: let the placeholder follow what an agent does."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field

from blocks.slack.handle import Handle, handle_in
from blocks.slack.posting import MentionSettings
from flowrt.connectors.slack.connector import SlackConnector
from flowrt.engine.block import Block
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.message import Message
from flowrt.slack.escaping import escape
from flowrt.slack.mrkdwn import to_mrkdwn
from flowrt.slack.splitting import LIMIT, split

MORE = " …"


class SlackReplyProgressSettings(MentionSettings):
    """Settings of `slack-reply-progress`."""

    text: Expr | None = Field(
        default=None,
        description="What to show for an event, in Slack's markup; null or empty for no change. "
        "Unset: what the agent has written, and the names of the tools it calls.",
    )
    handle_var: str = Field(
        default="slackReply", min_length=1, description="The variable with the handle."
    )


class SlackReplyProgress(Block[SlackReplyProgressSettings]):
    """Shows agent events in the placeholder, one edit a second and channel at most.

    Stands in the `events` chain of an agent; with `stream: true` the answer grows before the
    reader's eyes. It never waits for Slack, and a failing edit is logged. The message passes
    unchanged.

    ```yaml
    - type: slack-reply-progress
      connector: team
    ```
    """

    Settings = SlackReplyProgressSettings

    def __init__(self, settings: SlackReplyProgressSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._connector = site.connector(settings.connector, SlackConnector, "a slack connector")

    async def run(self, message: Message, run: Run) -> Message:
        handle = handle_in(message, self.settings.handle_var)
        if (text := self._text(message, handle)) is not None:
            # Asked of the connector each time: after a restart it has another one.
            progress = self._connector.progress
            progress.show(handle.channel, handle.ts, text, run.clock, run.runtime.spawn)
        return message

    def _text(self, message: Message, handle: Handle) -> Callable[[], str] | None:
        if self.settings.text is not None:
            value = self.settings.text.value(message)
            return None if value is None else lambda: split(str(value))[0]
        event = message.body if isinstance(message.body, dict) else {}
        if event.get("type") == "tool_call":
            tool = escape(str(event.get("tool")))
            return lambda: f":hourglass_flowing_sand: _{tool}_"
        if event.get("type") != "text":
            return None
        written = self._connector.progress.grow(
            handle.channel, handle.ts, int(event.get("iteration", 0)), str(event.get("text", ""))
        )
        return lambda: self._growing(written)

    def _growing(self, written: str) -> str:
        shown = split(to_mrkdwn(written[-LIMIT:], self.settings.allow_mentions))[-1]
        return shown + MORE if shown.strip() else ""
