"""`validate`: refuse a message that breaks a rule."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr, SubFlow
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import ExpressionError, FlowError
from flowrt.message import Message


class Rule(Settings):
    """One rule of a `validate`."""

    expr: Expr = Field(description="What must hold; must be true or false.")
    message: str | None = Field(
        default=None, description="What to say where it does not; unset, the expression is named."
    )

    @property
    def text(self) -> str:
        """What a caller is told who broke the rule."""
        return self.message or f"must hold: {self.expr.source}"


class ValidateSettings(Settings):
    """Settings of `validate`."""

    rules: list[Rule] = Field(min_length=1, description="All are evaluated, in order.")
    reject_status: int = Field(
        default=422, ge=100, le=599, description="`vars.httpStatus` of a rejected message."
    )
    on_reject: SubFlow | None = Field(
        default=None,
        description="Makes the answer to a rejected message, in place of the default body; "
        "empty counts as unset.",
    )


class Validate(Block[ValidateSettings]):
    """Lets a message pass that keeps every rule; answers and ends the flow for any other.

    The messages of the broken rules are in `vars.validationErrors`, the status in
    `vars.httpStatus`. Unless `onReject` makes another, the answer is
    `{"error": "validation_failed", "messages": [...]}`. A rule that cannot be evaluated fails the
    block.

    ```yaml
    - type: validate
      rejectStatus: 400
      rules:
        - expr: has(body.email) && body.email.contains("@")
          message: email is missing or is none
    ```
    """

    Settings = ValidateSettings

    def __init__(self, settings: ValidateSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._on_reject = None
        if settings.on_reject is not None and settings.on_reject.blocks:
            self._on_reject = site.chain(settings.on_reject, "onReject")

    async def run(self, message: Message, run: Run) -> Message | None:
        broken = self._broken(message)
        if not broken:
            return message
        message.update({"validationErrors": broken, "httpStatus": self.settings.reject_status})
        if self._on_reject is None:
            message.body = {"error": "validation_failed", "messages": broken}
            message.raw = False
            message.stop = True
            return message
        answer = await self._on_reject.run(message, run)
        if answer is not None:
            answer.stop = True
        return answer

    def _broken(self, message: Message) -> list[str]:
        broken = []
        for index, rule in enumerate(self.settings.rules):
            try:
                holds = rule.expr.test(message)
            except ExpressionError as error:
                raise FlowError(f"validate rule {index}: {error}") from error
            if not holds:
                broken.append(rule.text)
        return broken
