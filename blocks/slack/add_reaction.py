"""`slack-add-reaction`: react to a message with an emoji."""

from __future__ import annotations

from pydantic import Field

from blocks.slack.posting import CallSettings
from flowrt.connectors.slack.client import SlackFailure
from flowrt.connectors.slack.connector import SlackConnector
from flowrt.engine.block import Block
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.message import Message


class SlackAddReactionSettings(CallSettings):
    """Settings of `slack-add-reaction`."""

    channel: Expr = Field(description="The channel's id.")
    timestamp: Expr = Field(description="The message's time.")
    emoji: Expr = Field(description="The emoji's name, with or without colons.")


class SlackAddReaction(Block[SlackAddReactionSettings]):
    """Adds a reaction; one that is there already is fine. The message passes unchanged.

    ```yaml
    - type: slack-add-reaction
      connector: team
      channel: vars.slack.channel
      timestamp: vars.slack.ts
      emoji: '"eyes"'
    ```
    """

    Settings = SlackAddReactionSettings

    def __init__(self, settings: SlackAddReactionSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._client = site.connector(
            settings.connector, SlackConnector, "a slack connector"
        ).client

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        arguments = {
            "channel": settings.channel.key(message, "slack-add-reaction channel"),
            "timestamp": settings.timestamp.key(message, "slack-add-reaction timestamp"),
            "name": settings.emoji.key(message, "slack-add-reaction emoji").strip(":"),
        }
        try:
            await self._client.call("reactions.add", arguments, run.clock)
        except SlackFailure as failure:
            if failure.code != "already_reacted":
                raise
        return message
