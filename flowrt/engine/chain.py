"""Chains: blocks in order, with the four outcomes of the dialect (2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from flowrt.errors import BlockError
from flowrt.message import Message

if TYPE_CHECKING:
    from flowrt.engine.block import AnyBlock
    from flowrt.engine.run import Run


class Step(NamedTuple):
    """A bound block in a chain. `address` is the block's place as tests and traces name it.

    `ref` is the processor it was made from, maybe empty.
    """

    label: str
    address: str
    type: str
    block: AnyBlock
    ref: str = ""


class Chain:
    """Blocks that run one after the other on one message.

    `run` returns the last message (completed), the message with `stop` set (stopped) or None
    (dropped), and raises `BlockError` (failed). `number` is the place of a branch that may also be
    called by its name.
    """

    __slots__ = ("name", "number", "steps")

    def __init__(self, steps: Sequence[Step], name: str = "", number: int | None = None) -> None:
        self.steps = tuple(steps)
        self.name = name
        self.number = number

    async def run(self, message: Message, run: Run) -> Message | None:
        """Run every block in order, ending early on a drop, a stop or an error."""
        if run.trace is not None:
            return await self._run_traced(message, run)
        for step in self.steps:
            try:
                result = await step.block.run(message, run)
            except Exception as error:
                # whatever library it comes from, becomes a failure of the flow that names it.
                raise BlockError(step.label, error) from error
            if result is None or result.stop:
                return result
            message = result
        return message

    async def _run_traced(self, message: Message, run: Run) -> Message | None:
        trace = run.trace
        assert trace is not None
        for step in self.steps:
            place: Any = {"flow": run.flow, "path": step.address, "blockType": step.type}
            trace.write("block.pre-invoke", message, **place)
            began = run.clock.monotonic()
            try:
                result = await step.block.run(message, run)
            except Exception as error:
                failure = BlockError(step.label, error)
                trace.write(
                    "block.post-invoke", message, error=failure, duration=_ns(run, began), **place
                )
                raise failure from error
            trace.write(
                "block.post-invoke",
                result or message,
                duration=_ns(run, began),
                dropped=result is None,
                **place,
            )
            if result is None or result.stop:
                return result
            message = result
        return message


class RestOfChain(Chain):
    """The blocks of a chain from one of them on: always those that the chain itself has now.

    A spy that is put into the chain sees what goes through its rest as well.
    """

    __slots__ = ("_from", "_whole")

    def __init__(self, whole: Chain, start: int) -> None:
        self._whole = whole
        self._from = start
        self.name = whole.name
        self.number = None

    @property
    def steps(self) -> tuple[Step, ...]:  # type: ignore[override]
        return self._whole.steps[self._from :]


def _ns(run: Run, began: float) -> int:
    return int((run.clock.monotonic() - began) * 1e9)


def error_variable(error: BlockError, flow: str) -> dict[str, Any]:
    """`vars.error` as the dialect has it (2.4): the text, the flow, the outermost failing block."""
    return {"message": str(error), "flow": flow, "block": error.label}
