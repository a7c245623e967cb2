"""`queue-dispatch`: give a message to one of those who work a queue."""

from __future__ import annotations

import asyncio

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Duration, Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.engine.transport import SYSTEM, NobodyListens, Payload, packed, unpacked
from flowrt.errors import FlowError
from flowrt.message import Message
from flowrt.observe.log import get_logger


class QueueDispatchSettings(Settings):
    """Settings of `queue-dispatch`."""

    subject: Expr = Field(description="The queue; null, empty or blank is an error.")
    await_reply: bool = Field(
        default=False, description="Wait for the consumer's result and take it over."
    )
    timeout: Duration | None = Field(
        default=None,
        description="How long to wait for the result; unset, as long as it takes. "
        "Needs `awaitReply`.",
    )


class QueueDispatch(Block[QueueDispatchSettings]):
    """Sends a copy of the message to one of the flows with a `queue` source on the subject.

    With `awaitReply` the result's body replaces the body and its variables are merged over; a
    result that was dropped changes nothing, and a failure fails the block. Without it the message
    passes unchanged, and where nobody works the queue a log line says so.

    ```yaml
    - type: queue-dispatch
      settings:
        subject: '"jobs"'
        awaitReply: true
        timeout: 30s
    ```
    """

    Settings = QueueDispatchSettings

    def __init__(self, settings: QueueDispatchSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._log = get_logger(site.address)
        if settings.timeout is not None and not settings.await_reply:
            raise site.refuse(("timeout",), "timeout needs awaitReply: true", "remove one of them")

    async def run(self, message: Message, run: Run) -> Message:
        subject = self.settings.subject.key(message, "queue-dispatch subject")
        if subject.startswith(SYSTEM):
            raise FlowError(
                f"queue {subject!r} leaves the service, which only events can; use publish-event"
            )
        if self.settings.await_reply:
            _take_over(await self._request(subject, packed(message), run), message, subject)
            return message
        try:
            await run.runtime.transport.dispatch(subject, packed(message))
        except NobodyListens as reason:
            self._log.warning("a message was lost", reason=str(reason))
        return message

    async def _request(self, subject: str, payload: Payload, run: Run) -> Payload:
        limit = self.settings.timeout or None
        try:
            async with asyncio.timeout(limit):
                return await run.runtime.transport.request(subject, payload)
        except TimeoutError:
            raise FlowError(f"queue {subject!r} gave no answer within {limit:g}s") from None


def _take_over(reply: Payload, message: Message, subject: str) -> None:
    if "error" in reply:
        raise FlowError(f"queue {subject!r}: {reply['error']}")
    if "dropped" in reply:
        return
    result = unpacked(reply["message"])
    message.body = result.body
    message.raw = result.raw
    message.body_schema = result.body_schema
    message.update(result.vars)
