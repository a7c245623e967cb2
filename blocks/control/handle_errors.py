"""`handle-errors`: recover from a failure in part of a chain."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.chain import error_variable
from flowrt.engine.fields import Blocks
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import BlockError, FlowError
from flowrt.message import Message


class HandleErrorsSettings(Settings):
    """Settings of `handle-errors`."""

    process: Blocks = Field(description="The chain that may fail.")
    error: Blocks = Field(description="Runs on the same message, with `vars.error`, where it does.")


class HandleErrors(Block[HandleErrorsSettings]):
    """Runs `process`; where a block of it fails, runs `error` and goes on with its result.

    `vars.error` is `{message, flow, block}`: the text, this block's name, the label of the block
    that failed.

    ```yaml
    - type: handle-errors
      process:
        - type: object-read
          settings: {key: body.id}
      error:
        - type: set-payload
          value: '{"error": vars.error.message}'
    ```
    """

    Settings = HandleErrorsSettings

    def __init__(self, settings: HandleErrorsSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._name = site.named
        self._process = site.chain(settings.process, "process")
        self._error = site.chain(settings.error, "error")

    async def run(self, message: Message, run: Run) -> Message | None:
        try:
            return await self._process.run(message, run)
        except BlockError as error:
            failure = error
        message.set("error", error_variable(failure, self._name))
        try:
            return await self._error.run(message, run)
        except BlockError as error:
            raise FlowError(f"scope alternative: {error}") from error
