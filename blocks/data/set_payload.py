"""`set-payload`: replace the body."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import FlowError
from flowrt.message import Message


class SetPayloadSettings(Settings):
    """Settings of `set-payload`."""

    value: Expr = Field(description="What the body becomes.")
    raw_body: bool = Field(
        default=False,
        description="Make the body raw content: `value` must be text, sent as it is.",
    )
    content_type: str = Field(
        default="text/plain", description="The content type of a raw body; needs `rawBody`."
    )


class SetPayload(Block[SetPayloadSettings]):
    """Replaces the body with the value of an expression.

    ```yaml
    - type: set-payload
      value: '{"reply": "Hello, " + body.name}'
    ```
    """

    Settings = SetPayloadSettings

    def __init__(self, settings: SetPayloadSettings, site: Site) -> None:
        super().__init__(settings, site)
        if "content_type" in settings.model_fields_set and not settings.raw_body:
            raise site.refuse(("contentType",), "contentType needs rawBody: true")
        self._value = settings.value
        self._raw = settings.raw_body

    async def run(self, message: Message, run: Run) -> Message:
        value = self._value.value(message)
        if self._raw:
            if not isinstance(value, str):
                raise FlowError(f"rawBody needs text, found {type(value).__name__}")
            value = {"contentType": self.settings.content_type, "rawData": value}
        message.body = value
        message.raw = self._raw
        return message
