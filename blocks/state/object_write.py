"""`object-write`: store a value."""

from __future__ import annotations

from pydantic import Field

from blocks.state.keys import object_key, object_space
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.message import Message


class ObjectWriteSettings(Settings):
    """Settings of `object-write`."""

    key: Expr = Field(description="The key; null, empty or blank is an error.")
    value: Expr | None = Field(default=None, description="What to store; without it, the body.")
    volatile: bool = Field(default=False, description="Use the volatile tier.")


class ObjectWrite(Block[ObjectWriteSettings]):
    """Stores a JSON value under a key. The last writer wins; the message passes unchanged.

    ```yaml
    - type: object-write
      settings:
        key: '"profile:" + body.userId'
        value: '{"name": body.name}'
    ```
    """

    Settings = ObjectWriteSettings

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        key = object_key(settings.key, message, "object-write key")
        value = message.body if settings.value is None else settings.value.value(message)
        space = object_space(run, settings.volatile)
        await space.set(key, value)
        return message
