"""`slack-send-message`: post to a channel or a person."""

from __future__ import annotations

from pydantic import Field

from blocks.slack.posting import (
    WritingSettings,
    blocks_of,
    optional_key,
    parts_of,
    post,
    tolerate,
)
from flowrt.connectors.slack.client import SlackFailure
from flowrt.connectors.slack.connector import SlackConnector
from flowrt.engine.block import Block
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import FlowError
from flowrt.message import Message


class SlackSendMessageSettings(WritingSettings):
    """Settings of `slack-send-message`."""

    target: Expr = Field(description="The id of a channel, or of a user for a direct message.")
    thread_ts: Expr | None = Field(
        default=None, description="The time of a thread's root; null or empty for no thread."
    )


class SlackSendMessage(Block[SlackSendMessageSettings]):
    """Posts a message; `vars.slackChannel` and `vars.slackTs` say where it is.

    A text beyond Slack's limit goes out in parts, in order; in a channel those after the first go
    to its thread. The body passes unchanged.

    ```yaml
    - type: slack-send-message
      connector: team
      target: vars.slack.channel
      threadTs: vars.slack.threadTs
      text: body.answer
      format: markdown
    ```
    """

    Settings = SlackSendMessageSettings

    def __init__(self, settings: SlackSendMessageSettings, site: Site) -> None:
        super().__init__(settings, site)
        if settings.text is None and settings.blocks is None:
            raise site.refuse(
                (), "slack-send-message needs `text` or `blocks`", "write what to post"
            )
        self._client = site.connector(
            settings.connector, SlackConnector, "a slack connector"
        ).client

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        target = settings.target.key(message, "slack-send-message target")
        parts, blocks = parts_of(settings, message), blocks_of(settings, message)
        if not parts and not blocks:
            raise FlowError("slack-send-message has nothing to post: its text is empty")
        thread = optional_key(settings.thread_ts, message)
        try:
            channel, ts = await post(
                self._client, target, parts, run.clock, thread_ts=thread, blocks=blocks
            )
        except SlackFailure as failure:
            if settings.fail_on_error:
                raise
            tolerate(failure, message)
            return message
        message.update({"slackChannel": channel, "slackTs": ts})
        if not settings.fail_on_error:
            message.set("slackError", None)
        return message
