"""`slack-reply-finish`: put the answer in place of the placeholder."""

from __future__ import annotations

from pydantic import Field

from blocks.slack.handle import handle_in
from blocks.slack.posting import Format, MentionSettings, edit, rendered
from flowrt.connectors.slack.connector import SlackConnector
from flowrt.engine.block import Block
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.expr import Expression
from flowrt.message import Message
from flowrt.slack.splitting import split

NOTHING = "_(no answer)_"


class SlackReplyFinishSettings(MentionSettings):
    """Settings of `slack-reply-finish`."""

    text: Expr | None = Field(default=None, description="The answer; unset, the body.")
    format: Format = Field(
        default="markdown",
        description="What it is: Markdown, plain text, or Slack's own markup, taken as it is.",
    )
    handle_var: str = Field(
        default="slackReply", min_length=1, description="The variable with the handle."
    )


class SlackReplyFinish(Block[SlackReplyFinishSettings]):
    """Puts an answer in place of what `slack-reply` has posted.

    Markdown becomes Slack's markup and mentions in it ring nobody, unless `allowMentions` names
    them. An answer beyond Slack's limit goes on in further messages, in order. The body passes
    unchanged.

    ```yaml
    - type: slack-reply-finish
      connector: team
      text: body.reply
    ```
    """

    Settings = SlackReplyFinishSettings

    def __init__(self, settings: SlackReplyFinishSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._connector = site.connector(settings.connector, SlackConnector, "a slack connector")
        self._text = settings.text or Expression.compile("body", scope=site.scope)

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        handle = handle_in(message, settings.handle_var)
        text = rendered(self._text.text(message), settings.format, settings.allow_mentions)
        await self._connector.progress.finish(handle.channel, handle.ts)
        await edit(
            self._connector.client,
            handle.channel,
            handle.ts,
            split(text) if text.strip() else [NOTHING],
            run.clock,
            thread_ts=handle.thread_ts,
        )
        return message
