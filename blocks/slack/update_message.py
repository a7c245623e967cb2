"""`slack-update-message`: put another text in place of a message's."""

from __future__ import annotations

from pydantic import Field

from blocks.slack.posting import WritingSettings, blocks_of, edit, parts_of, tolerate
from flowrt.connectors.slack.client import SlackFailure
from flowrt.connectors.slack.connector import SlackConnector
from flowrt.engine.block import Block
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import FlowError
from flowrt.message import Message


class SlackUpdateMessageSettings(WritingSettings):
    """Settings of `slack-update-message`."""

    channel: Expr = Field(description="The channel's id.")
    timestamp: Expr = Field(description="The message's time, such as `vars.slackTs`.")


class SlackUpdateMessage(Block[SlackUpdateMessageSettings]):
    """Edits a message that the app has posted. The message of the flow passes unchanged.

    Of a text beyond Slack's limit the first part takes the place, the others follow in the thread
    of the message.

    ```yaml
    - type: slack-update-message
      connector: team
      channel: vars.slackChannel
      timestamp: vars.slackTs
      text: '"done: " + body.result'
    ```
    """

    Settings = SlackUpdateMessageSettings

    def __init__(self, settings: SlackUpdateMessageSettings, site: Site) -> None:
        super().__init__(settings, site)
        if settings.text is None and settings.blocks is None:
            raise site.refuse(
                (), "slack-update-message needs `text` or `blocks`", "write what it is to show"
            )
        self._client = site.connector(
            settings.connector, SlackConnector, "a slack connector"
        ).client

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        channel = settings.channel.key(message, "slack-update-message channel")
        ts = settings.timestamp.key(message, "slack-update-message timestamp")
        parts, blocks = parts_of(settings, message), blocks_of(settings, message)
        if not parts and not blocks:
            raise FlowError("slack-update-message has nothing to show: its text is empty")
        try:
            await edit(self._client, channel, ts, parts, run.clock, blocks=blocks)
        except SlackFailure as failure:
            if settings.fail_on_error:
                raise
            tolerate(failure, message)
            return message
        if not settings.fail_on_error:
            message.set("slackError", None)
        return message
