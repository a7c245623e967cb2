"""`sse-event`: write to the open stream of a caller."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.engine.streams import StreamClosed
from flowrt.errors import FlowError
from flowrt.expr import Expression
from flowrt.message import Message

_DEFAULT = "http"


class SseEventSettings(Settings):
    """Settings of `sse-event`."""

    event: str | None = Field(
        default=None, min_length=1, pattern=r"^[^\r\n]*$", description="The frame's event name."
    )
    data: Expr | None = Field(
        default=None,
        description="The frame's data: text as it is, else JSON; unset, the body as JSON. Where "
        "neither `event` nor `data` is given, no frame is written.",
    )
    stream: Expr | None = Field(
        default=None, description="The stream's address; unset, `vars.sseStream`."
    )
    connector: str = Field(
        default=_DEFAULT,
        min_length=1,
        description="The connector of an address that does not name its own.",
    )
    close: bool = Field(default=False, description="End the stream after the frame.")
    stop: bool = Field(default=False, description="End the flow after the frame.")
    if_closed: Literal["stop", "ignore", "error"] = Field(
        default="stop", description="Where the stream is closed: end the flow, go on, or fail."
    )


class SseEvent(Block[SseEventSettings]):
    """Writes a server-sent event to the caller's open stream; the message passes unchanged.

    The stream's address is in `vars.sseStream` and goes along with the message, through `flow-ref`,
    `split` and queues. A message without an address always fails, whatever `ifClosed` says.

    ```yaml
    - type: sse-event
      settings:
        event: progress
        data: '{"percent": 50}'
    ```
    """

    Settings = SseEventSettings

    def __init__(self, settings: SseEventSettings, site: Site) -> None:
        super().__init__(settings, site)
        # The default one need not be declared: a source of that type starts it.
        self._connectors = {_DEFAULT, *site.connectors}
        if settings.connector not in self._connectors:
            raise site.refuse(
                ("connector",),
                f'sse-event block: connector "{settings.connector}" is not configured',
                "declare it under `connectors:`",
            )
        self._stream = settings.stream or Expression.compile("vars.sseStream", scope=site.scope)

    async def run(self, message: Message, run: Run) -> Message:
        connector, stream = self._address(message)
        try:
            await self._write(connector, stream, message, run)
        except StreamClosed:
            if self.settings.if_closed == "error":
                raise
            if self.settings.if_closed == "stop":
                message.stop = True
        message.stop = message.stop or self.settings.stop
        return message

    def _address(self, message: Message) -> tuple[str, str]:
        address = self._stream.key(message, "sse-event stream")
        connector, colon, stream = address.partition(":")
        if not colon:
            connector, stream = self.settings.connector, address
        if connector not in self._connectors or not stream:
            raise FlowError(
                f"sse-event stream {address!r} is no address; it is <connector>:<id>, and the "
                f"connectors are {', '.join(sorted(self._connectors))}"
            )
        return connector, stream

    async def _write(self, connector: str, stream: str, message: Message, run: Run) -> None:
        streams = run.runtime.streams.get(connector)
        if streams is None:
            # An invoke serves nobody: the caller of this address is not there.
            raise StreamClosed(
                f"sse-event stream {stream!r} is closed: connector {connector!r} serves no streams"
            )
        if self.settings.event is not None or self.settings.data is not None:
            await streams.send_event(stream, self.settings.event or "", self._data(message))
        if self.settings.close:
            await streams.close_stream(stream)

    def _data(self, message: Message) -> str:
        if self.settings.data is not None:
            return self.settings.data.text(message)
        return json.dumps(message.body, ensure_ascii=False, separators=(",", ":"))
