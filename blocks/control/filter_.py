"""`filter`: let a message pass or drop it."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.message import Message


class FilterSettings(Settings):
    """Settings of `filter`."""

    expr: Expr = Field(
        description="The message passes where this is true and is dropped otherwise."
    )


class Filter(Block[FilterSettings]):
    """Drops every message for which the expression is false.

    ```yaml
    - type: filter
      expr: body.botId == null
    ```
    """

    Settings = FilterSettings

    async def run(self, message: Message, run: Run) -> Message | None:
        return message if self.settings.expr.test(message) else None
