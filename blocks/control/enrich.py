"""`enrich`: run a chain aside and copy chosen results back."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr, SubFlow
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.message import Message


class EnrichSettings(Settings):
    """Settings of `enrich`."""

    body: SubFlow = Field(description="Runs on a scope of the message.")
    set_body: Expr | None = Field(
        default=None, description="Over the scope's result; becomes the body."
    )
    set_vars: dict[str, Expr] = Field(
        default_factory=dict, description="Variable by variable, over the scope's result."
    )


class Enrich(Block[EnrichSettings]):
    """Runs a chain on the side and copies back only what `setBody` and `setVars` name.

    ```yaml
    - type: enrich
      body:
        process:
          - type: object-read
            settings: {key: body.userId}
      setVars:
        profile: body
    ```
    """

    Settings = EnrichSettings

    def __init__(self, settings: EnrichSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._body = site.chain(settings.body, "body")

    async def run(self, message: Message, run: Run) -> Message | None:
        result = await self._body.run(message.scoped(), run)
        if result is None:
            return None
        # All before any: where one cannot be evaluated, the message is as it was.
        variables = {name: expr.value(result) for name, expr in self.settings.set_vars.items()}
        if self.settings.set_body is not None:
            message.body = self.settings.set_body.value(result)
            message.raw = False
        message.update(variables)
        message.stop = message.stop or result.stop
        return message
