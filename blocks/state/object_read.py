"""`object-read`: read a stored value."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from blocks.state.keys import object_key, object_space
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.errors import FlowError
from flowrt.message import Message


class ObjectReadSettings(Settings):
    """Settings of `object-read`."""

    key: Expr = Field(description="The key; null, empty or blank is an error.")
    volatile: bool = Field(default=False, description="Use the volatile tier.")
    as_: str | None = Field(
        default=None, alias="as", min_length=1, description="The variable to fill; else the body."
    )
    default: Expr | None = Field(default=None, description="Used where nothing is stored.")
    exists_var: str | None = Field(
        default=None, min_length=1, description="A variable that says whether something was stored."
    )


class ObjectRead(Block[ObjectReadSettings]):
    """Reads a value that `object-write` stored.

    Where nothing is stored and there is no `default`, the body becomes null, or the variable stays
    as it was.

    ```yaml
    - type: object-read
      settings:
        key: '"profile:" + body.userId'
        as: profile
        default: '{}'
    ```
    """

    Settings = ObjectReadSettings

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        key = object_key(settings.key, message, "object-read key")
        space = object_space(run, settings.volatile)
        stored = await space.get(key)
        if stored is not None and isinstance(stored.value, bytes):
            raise FlowError(f"object-read: {key!r} holds bytes, not a JSON value")
        if settings.exists_var is not None:
            message.set(settings.exists_var, stored is not None)
        if stored is not None:
            self._fold(message, stored.value)
        elif settings.default is not None:
            self._fold(message, settings.default.value(message))
        elif settings.as_ is None:
            self._fold(message, None)
        return message

    def _fold(self, message: Message, value: Any) -> None:
        if self.settings.as_ is not None:
            message.set(self.settings.as_, value)
        else:
            message.body = value
            message.raw = False
