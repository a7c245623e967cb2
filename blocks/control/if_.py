"""`if`: one of two chains."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr, SubFlow
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.message import Message


class IfSettings(Settings):
    """Settings of `if`."""

    condition: Expr = Field(description="Decides; must be true or false.")
    then: SubFlow = Field(description="Runs where the condition is true.")
    otherwise: SubFlow | None = Field(
        default=None, alias="else", description="Runs where it is false; without it, pass on."
    )


class If(Block[IfSettings]):
    """Runs `then` where the condition is true, else `else`, on the same message.

    ```yaml
    - type: if
      condition: body.amount > 100
      then:
        process:
          - type: set-variable
            settings: {name: size, value: '"large"'}
    ```
    """

    Settings = IfSettings

    def __init__(self, settings: IfSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._then = site.chain(settings.then, "then")
        self._else = site.chain(settings.otherwise, "else") if settings.otherwise else None

    async def run(self, message: Message, run: Run) -> Message | None:
        if self.settings.condition.test(message):
            return await self._then.run(message, run)
        if self._else is not None:
            return await self._else.run(message, run)
        return message
