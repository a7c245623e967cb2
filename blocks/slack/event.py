"""`slack-event`: take the event out of what Slack sends, and drop the others."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.message import Message
from flowrt.slack.post import event_body


class SlackEventSettings(Settings):
    """Settings of `slack-event`."""

    event_types: list[str] = Field(
        default=[], description="The types to go on with, such as `app_mention`; unset, all."
    )
    filter: Expr | None = Field(
        default=None, description="A condition over the event, which is the body by then."
    )


class SlackEvent(Block[SlackEventSettings]):
    """Makes an event of the Events API the body; drops what is none, or not wanted.

    The body becomes `{type, user, channel, text, ts, threadTs, botId, teamId, eventId, raw}`;
    fields that the event lacks are null, `raw` is the event itself.

    ```yaml
    - type: slack-event
      eventTypes: [app_mention, message]
      filter: body.botId == null && !has(body.raw.subtype)
    ```
    """

    Settings = SlackEventSettings

    async def run(self, message: Message, run: Run) -> Message | None:
        envelope = message.body
        if not isinstance(envelope, dict) or envelope.get("type") != "event_callback":
            return None
        event = event_body(envelope)
        if self.settings.event_types and event["type"] not in self.settings.event_types:
            return None
        message.body = event
        message.body_schema = None
        if self.settings.filter is not None and not self.settings.filter.test(message):
            return None
        return message
