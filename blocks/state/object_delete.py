"""`object-delete`: remove a stored value."""

from __future__ import annotations

from pydantic import Field

from blocks.state.keys import object_key, object_space
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.message import Message


class ObjectDeleteSettings(Settings):
    """Settings of `object-delete`."""

    key: Expr = Field(description="The key; null, empty or blank is an error.")
    volatile: bool = Field(default=False, description="Use the volatile tier.")


class ObjectDelete(Block[ObjectDeleteSettings]):
    """Removes what is stored under a key; nothing there is fine.

    ```yaml
    - type: object-delete
      settings:
        key: '"profile:" + body.userId'
    ```
    """

    Settings = ObjectDeleteSettings

    async def run(self, message: Message, run: Run) -> Message:
        key = object_key(self.settings.key, message, "object-delete key")
        space = object_space(run, self.settings.volatile)
        await space.delete(key)
        return message
