"""`publish-event`: tell every flow that listens."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.engine.transport import NobodyListens, packed
from flowrt.message import Message
from flowrt.observe.log import get_logger


class PublishEventSettings(Settings):
    """Settings of `publish-event`."""

    subject: Expr = Field(
        description="The topic; null, empty or blank is an error. One that starts with `system:` "
        "leaves the service."
    )
    value: Expr | None = Field(default=None, description="The body to send; without it, the body.")


class PublishEvent(Block[PublishEventSettings]):
    """Sends a copy of the message to every flow with an `events` source on the subject.

    It does not wait for them; the message passes unchanged. Where nobody listens, a log line says
    so.

    ```yaml
    - type: publish-event
      settings:
        subject: '"notifications"'
        value: '{"orderId": body.id}'
    ```
    """

    Settings = PublishEventSettings

    def __init__(self, settings: PublishEventSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._log = get_logger(site.address)

    async def run(self, message: Message, run: Run) -> Message:
        subject = self.settings.subject.key(message, "publish-event subject")
        event = message
        if self.settings.value is not None:
            event = message.scoped()
            event.body = self.settings.value.value(message)
            event.raw = False
        try:
            await run.runtime.transport.publish(subject, packed(event))
        except NobodyListens as reason:
            self._log.info("an event was heard by nobody", reason=str(reason))
        return message
