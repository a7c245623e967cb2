"""`foreach`: a chain for each element of a list."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr, SubFlow
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import FlowError
from flowrt.expr.values import kind_of
from flowrt.message import Message


class ForeachSettings(Settings):
    """Settings of `foreach`."""

    items: Expr = Field(description="The list.")
    as_: str = Field(
        default="item", alias="as", min_length=1, description="The variable that holds the element."
    )
    mode: Literal["iterate", "map"] = Field(
        default="iterate",
        description="`iterate` works on the message itself; `map` collects results into the body.",
    )
    body: SubFlow = Field(description="Runs once for each element, in order.")


class Foreach(Block[ForeachSettings]):
    """Runs a chain for each element of a list, one after the other.

    `iterate` keeps what each pass changes in the message; `map` gives each pass a scope of its own
    and makes the body the list of their results, null where a pass dropped its message.

    ```yaml
    - type: foreach
      items: body.orders
      as: order
      mode: map
      body:
        process:
          - type: set-payload
            value: vars.order.id
    ```
    """

    Settings = ForeachSettings

    def __init__(self, settings: ForeachSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._body = site.chain(settings.body, "body")

    async def run(self, message: Message, run: Run) -> Message | None:
        items = self.settings.items.value(message)
        if not isinstance(items, list):
            raise FlowError(f"foreach items must evaluate to an array, got {kind_of(items)}")
        if self.settings.mode == "map":
            return await self._map(message, items, run)
        return await self._iterate(message, items, run)

    async def _iterate(self, message: Message, items: list[Any], run: Run) -> Message | None:
        name = self.settings.as_
        had, before = name in message.vars, message.vars.get(name)
        for item in items:
            message.set(name, item)
            result = await self._body.run(message, run)
            if result is None or result.stop:
                return result
            message = result
        if had:
            message.set(name, before)
        else:
            message.unset(name)
        return message

    async def _map(self, message: Message, items: list[Any], run: Run) -> Message:
        collected: list[Any] = []
        for item in items:
            scope = message.scoped()
            scope.set(self.settings.as_, item)
            result = await self._body.run(scope, run)
            collected.append(None if result is None else result.body)
            if result is not None and result.stop:
                message.stop = True
                break
        message.body = collected
        message.raw = False
        return message
