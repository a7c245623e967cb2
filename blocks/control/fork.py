"""`fork`: several chains side by side."""

from __future__ import annotations

from functools import partial

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.chain import Chain
from flowrt.engine.fields import Blocks
from flowrt.engine.pool import run_pooled
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import BlockError, FlowError
from flowrt.message import Message


class ForkBranch(Settings):
    """One branch of a `fork`."""

    name: str = Field(
        default="", description="The branch's name in addresses and errors; else its index."
    )
    process: Blocks = Field(description="Runs on a copy of the message.")


class ForkSettings(Settings):
    """Settings of `fork`."""

    branches: list[ForkBranch] = Field(
        min_length=1, description="Run at the same time, as many as the flow's `pool` allows."
    )


class Fork(Block[ForkSettings]):
    """Runs branches side by side, each on a copy, and waits for all of them.

    The message passes unchanged: what the branches make of their copies is discarded. The first
    error cancels the other branches. A stop in a branch ends the flow once all are done.

    ```yaml
    - type: fork
      branches:
        - name: store
          process:
            - type: object-write
              settings: {key: body.id}
        - name: tell
          process:
            - type: log
              message: '"got " + body.id'
    ```
    """

    Settings = ForkSettings

    def __init__(self, settings: ForkSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._pool = min(site.pool, len(settings.branches))
        self._branches: dict[str, Chain] = {}
        for index, branch in enumerate(settings.branches):
            name = branch.name or str(index)
            if name in self._branches:
                raise site.refuse(
                    ("branches", index, "name"),
                    f'fork has more than one branch "{name}"',
                    "a branch without a name is called by its index; rename one",
                )
            self._branches[name] = site.chain(branch.process, name, index)

    async def run(self, message: Message, run: Run) -> Message:
        stops: list[str] = []
        pieces = (
            partial(self._branch, name, chain, message, run, stops)
            for name, chain in self._branches.items()
        )
        await run_pooled(pieces, self._pool)
        message.stop = message.stop or bool(stops)
        return message

    async def _branch(
        self, name: str, chain: Chain, message: Message, run: Run, stops: list[str]
    ) -> None:
        try:
            result = await chain.run(message.clone(), run)
        except BlockError as error:
            raise FlowError(f'fork branch "{name}": {error}') from error
        if result is not None and result.stop:
            stops.append(name)
