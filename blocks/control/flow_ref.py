"""`flow-ref`: call another flow."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import FlowError
from flowrt.message import Message

MAX_DEPTH = 32
"""Flows that call each other and wait. Deeper ones would end in Python's own recursion limit."""


class FlowRefSettings(Settings):
    """Settings of `flow-ref`."""

    flow: str = Field(min_length=1, description="The flow's name.")
    one_way: bool = Field(
        default=False, description="Start it in the background and go on at once."
    )


class FlowRef(Block[FlowRefSettings]):
    """Calls another flow of the service with a copy of the message.

    Its body replaces the body and its variables are merged over; a callee that drops its message
    leaves the caller's unchanged.

    ```yaml
    - type: flow-ref
      settings:
        flow: load-profile
    ```
    """

    Settings = FlowRefSettings

    def __init__(self, settings: FlowRefSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._target = site.flow(settings.flow)

    async def run(self, message: Message, run: Run) -> Message:
        flow = self._target.flow
        if self.settings.one_way:
            work = self._detached(message.rekeyed(), run.detached(flow.name))
            run.runtime.spawn(work, f"flow {flow.name}")
            return message
        if run.depth >= MAX_DEPTH:
            raise FlowError(
                f"{MAX_DEPTH} flows wait for each other, the last is {run.flow!r}: they call each "
                "other in a circle that does not end; give it an end, or call oneWay"
            )
        try:
            result = await flow.run(message.rekeyed(), run.named(flow.name))
        except FlowError as error:
            raise FlowError(f'flow-ref "{flow.name}": {error}') from error
        if result is None:
            return message
        message.body = result.body
        message.raw = result.raw
        message.body_schema = result.body_schema
        message.update(result.vars)
        message.stop = message.stop or result.stop
        return message

    async def _detached(self, message: Message, run: Run) -> None:
        await self._target.flow.run(message, run)
