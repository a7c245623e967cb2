"""The source `events`: every message that is published to a subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from flowrt.engine.block import Settings
from flowrt.engine.source import LISTENERS, Deliver, Source, SourceSite
from flowrt.engine.transport import Payload, Subscription, unpacked
from flowrt.errors import FlowError
from flowrt.observe.log import get_logger
from flowrt.sources.subject import Subject

if TYPE_CHECKING:
    from flowrt.engine.run import Runtime


class EventsSettings(Settings):
    """Settings of the source `events`."""

    subject: Subject = Field(description="The topic, as `publish-event` computes it.")
    listeners: int | None = Field(
        default=None, ge=1, description="Messages at a time; unset, the flow's `workers`, else 8."
    )
    once: bool = Field(
        default=False,
        description="Of several replicas on one Redis one takes each message, not every one.",
    )


class Events(Source[EventsSettings]):
    """Sends a flow a copy of every message that `publish-event` publishes to a subject.

    As many messages as the flow's `buffer` says may wait; then publishers wait too. A flow that
    fails leaves a log line: nobody waits for its result. Each replica gets the message, unless
    `once` is set.

    ```yaml
    source:
      type: events
      settings:
        subject: notifications
    ```
    """

    Settings = EventsSettings
    inner = True

    def __init__(self, settings: EventsSettings, site: SourceSite) -> None:
        super().__init__(settings, site)
        self._log = get_logger(f"flowrt.sources.{site.flow}")

    async def start(self, deliver: Deliver, runtime: Runtime) -> None:
        async def receive(payload: Payload) -> None:
            message = unpacked(payload)
            try:
                await deliver(message)
            except FlowError as error:
                self._log.error("an event failed", event_id=message.event_id, error=str(error))

        self._subscription: Subscription = await runtime.transport.subscribe(
            self.settings.subject,
            receive,
            listeners=self.settings.listeners or self.site.workers or LISTENERS,
            buffer=self.site.buffer,
            shared=self.site.flow if self.settings.once else "",
        )

    async def stop(self) -> None:
        await self._subscription.stop()
