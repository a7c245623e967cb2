"""`set-variable`: set one variable."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.message import Message


class SetVariableSettings(Settings):
    """Settings of `set-variable`."""

    name: str = Field(min_length=1, description="The variable's name.")
    value: Expr = Field(
        description="What it becomes. Text is written `'\"100\"'`; `100` is a number."
    )


class SetVariable(Block[SetVariableSettings]):
    """Sets a variable to the value of an expression.

    ```yaml
    - type: set-variable
      settings:
        name: threadId
        value: '"slack:" + body.channel'
    ```
    """

    Settings = SetVariableSettings

    async def run(self, message: Message, run: Run) -> Message:
        message.set(self.settings.name, self.settings.value.value(message))
        return message
