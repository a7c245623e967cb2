"""`object-list`: read the stored values whose keys begin alike."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from blocks.state.keys import object_key, object_space
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.errors import FlowError
from flowrt.message import Message
from flowrt.storage.objects import PREFIX
from flowrt.storage.tiers import Space


class ObjectListSettings(Settings):
    """Settings of `object-list`."""

    prefix: Expr = Field(
        description="What the keys begin with, compared exactly; null, empty or blank is an error."
    )
    volatile: bool = Field(default=False, description="Use the volatile tier.")
    as_: str | None = Field(
        default=None, alias="as", min_length=1, description="The variable to fill; else the body."
    )
    limit: int = Field(
        default=1000, ge=1, le=10_000, description="The most objects; more of them are an error."
    )


class ObjectList(Block[ObjectListSettings]):
    """Reads every value that `object-write` stored under keys that begin with `prefix`.

    Gives a list of {key, value}, in the order of the keys; where nothing is stored it is empty. One
    key for each entry, listed, is a store that many may write to at once without losing anything:
    a list under one key, read and written back, loses what another wrote in between.

    ```yaml
    - type: object-list
      settings:
        prefix: '"notes/" + body.userId + "/"'
        as: notes
    ```
    """

    Settings = ObjectListSettings

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        prefix = object_key(settings.prefix, message, "object-list prefix")
        found = await self._found(object_space(run, settings.volatile), prefix)
        if settings.as_ is not None:
            message.set(settings.as_, found)
        else:
            message.body = found
            message.raw = False
        return message

    async def _found(self, space: Space, prefix: str) -> list[dict[str, Any]]:
        page = await space.scan(prefix, limit=self.settings.limit)
        if page.after is not None:
            # A list that silently ends somewhere would be taken for the whole.
            raise FlowError(
                f"object-list: more than {self.settings.limit} objects (limit) begin with "
                f"{prefix.removeprefix(PREFIX)!r}; make the prefix longer, or raise the limit"
            )
        found = []
        for key in page.keys:
            stored = await space.get(key.name)
            if stored is not None:  # else it was deleted since the scan
                found.append({"key": key.name.removeprefix(PREFIX), "value": stored.value})
        return found
