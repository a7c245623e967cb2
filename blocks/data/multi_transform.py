"""`multi-transform`: several body and variable changes in order."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import ExpressionError, FlowError
from flowrt.message import Message


class Transform(Settings):
    """One step: either `setBody`, or `setVar` with `value`."""

    set_body: Expr | None = Field(default=None, description="What the body becomes.")
    set_var: str | None = Field(default=None, min_length=1, description="The variable to set.")
    value: Expr | None = Field(default=None, description="What the variable becomes.")


class MultiTransformSettings(Settings):
    """Settings of `multi-transform`."""

    transforms: list[Transform] = Field(
        min_length=1, description="The steps; each sees what the one before it changed."
    )


class MultiTransform(Block[MultiTransformSettings]):
    """Changes the body and variables in several steps.

    ```yaml
    - type: multi-transform
      settings:
        transforms:
          - setVar: channel
            value: body.channel
          - setBody: '{"text": body.text}'
    ```
    """

    Settings = MultiTransformSettings

    def __init__(self, settings: MultiTransformSettings, site: Site) -> None:
        super().__init__(settings, site)
        for index, step in enumerate(settings.transforms):
            body = step.set_body is not None and step.set_var is None and step.value is None
            variable = step.set_body is None and step.set_var is not None and step.value is not None
            if not (body or variable):
                raise site.refuse(
                    ("transforms", index), "a step is either `setBody`, or `setVar` with `value`"
                )

    async def run(self, message: Message, run: Run) -> Message:
        for index, step in enumerate(self.settings.transforms):
            try:
                if step.set_body is not None:
                    message.body = step.set_body.value(message)
                elif step.set_var is not None and step.value is not None:
                    message.set(step.set_var, step.value.value(message))
            except ExpressionError as error:
                raise FlowError(f"transform {index}: {error}") from error
        return message
