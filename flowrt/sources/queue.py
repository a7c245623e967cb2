"""The source `queue`: messages that one of its listeners takes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic import Field

from flowrt.engine.block import Settings
from flowrt.engine.fields import Duration
from flowrt.engine.source import LISTENERS, Deliver, Source, SourceSite
from flowrt.engine.transport import Payload, Subscription, packed, unpacked
from flowrt.errors import FlowError
from flowrt.message import Message
from flowrt.observe.log import get_logger
from flowrt.sources.subject import Subject

if TYPE_CHECKING:
    from flowrt.engine.delivery import Delivery
    from flowrt.engine.run import Runtime


class QueueSettings(Settings):
    """Settings of the source `queue`."""

    subject: Subject = Field(description="The queue, as `queue-dispatch` computes it.")
    listeners: int | None = Field(
        default=None, ge=1, description="Messages at a time; unset, the flow's `workers`, else 8."
    )
    timeout: Duration | None = Field(
        default=None, description="How long the flow may take for a message; unset, it may take on."
    )


class Queue(Source[QueueSettings]):
    """Sends a flow messages that `queue-dispatch` puts in a queue, each to one consumer.

    Several flows on one subject share its messages. As many messages as the flow's `buffer` says
    may wait; then senders wait too. A sender that waits for the answer gets the flow's result, or
    its failure.

    ```yaml
    source:
      type: queue
      settings:
        subject: jobs
        listeners: 4
    ```
    """

    Settings = QueueSettings
    inner = True

    def __init__(self, settings: QueueSettings, site: SourceSite) -> None:
        super().__init__(settings, site)
        self._log = get_logger(f"flowrt.sources.{site.flow}")

    async def start(self, deliver: Deliver, runtime: Runtime) -> None:
        async def answer(payload: Payload, delivery: Delivery) -> Payload:
            message = unpacked(payload)
            # The same each time it comes: what a flow marks as begun under it may be begun again.
            message.event_id = delivery.id or message.event_id
            try:
                result = await self._within(deliver, message, delivery)
            except FlowError as error:
                # Logged here too: a sender that does not wait will never hear of it.
                self._log.error("a job failed", event_id=message.event_id, error=str(error))
                return {"error": str(error)}
            return {"dropped": True} if result is None else {"message": packed(result)}

        self._subscription: Subscription = await runtime.transport.consume(
            self.settings.subject,
            answer,
            listeners=self.settings.listeners or self.site.workers or LISTENERS,
            buffer=self.site.buffer,
        )

    async def stop(self) -> None:
        await self._subscription.stop()

    async def _within(
        self, deliver: Deliver, message: Message, delivery: Delivery
    ) -> Message | None:
        limit = self.settings.timeout or None
        try:
            async with asyncio.timeout(limit):
                return await deliver(message, delivery)
        except TimeoutError:
            raise FlowError(f"flow {self.site.flow!r} took longer than {limit:g}s") from None
