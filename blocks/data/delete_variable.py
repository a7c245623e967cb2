"""`delete-variable`: remove one variable."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.run import Run
from flowrt.message import Message


class DeleteVariableSettings(Settings):
    """Settings of `delete-variable`."""

    name: str = Field(min_length=1, description="The variable's name; absent is fine.")


class DeleteVariable(Block[DeleteVariableSettings]):
    """Removes a variable.

    ```yaml
    - type: delete-variable
      settings:
        name: draft
    ```
    """

    Settings = DeleteVariableSettings

    async def run(self, message: Message, run: Run) -> Message:
        message.unset(self.settings.name)
        return message
