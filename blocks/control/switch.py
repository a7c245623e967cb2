"""`switch`: the first case whose guard is true."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Blocks, Expr, SubFlow
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import ExpressionError, FlowError
from flowrt.message import Message


class Case(Settings):
    """One case of a `switch`."""

    when: Expr = Field(description="The guard; must be true or false.")
    name: str = Field(default="", description="The case's name in addresses; else its index.")
    process: Blocks = Field(description="Runs where the guard is the first true one.")


class SwitchSettings(Settings):
    """Settings of `switch`."""

    cases: list[Case] = Field(min_length=1, description="Tried in order.")
    default: SubFlow | None = Field(
        default=None, description="Runs where no guard is true; without it, pass on."
    )


class Switch(Block[SwitchSettings]):
    """Runs the first case whose guard is true.

    ```yaml
    - type: switch
      cases:
        - when: body.kind == "order"
          process:
            - type: log
              message: '"an order"'
      default:
        process:
          - type: log
            message: '"something else"'
    ```
    """

    Settings = SwitchSettings

    def __init__(self, settings: SwitchSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._cases = [
            (index, case.when, site.chain(case.process, case.name or str(index), index))
            for index, case in enumerate(settings.cases)
        ]
        self._default = site.chain(settings.default, "default") if settings.default else None

    async def run(self, message: Message, run: Run) -> Message | None:
        for index, when, chain in self._cases:
            try:
                chosen = when.test(message)
            except ExpressionError as error:
                raise FlowError(f"switch case {index}: {error}") from error
            if chosen:
                return await chain.run(message, run)
        if self._default is not None:
            return await self._default.run(message, run)
        return message
