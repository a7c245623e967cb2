"""A flow: a root chain with a name and, where declared, a recovery chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowrt.engine.chain import Chain, error_variable
from flowrt.errors import BlockError, FlowError
from flowrt.message import Message

if TYPE_CHECKING:
    from flowrt.engine.run import Run


class Flow:
    """A named root chain, callable by `invoke` and `flow-ref`."""

    __slots__ = ("chain", "error", "name")

    def __init__(self, name: str, chain: Chain, error: Chain | None = None) -> None:
        self.name = name
        self.chain = chain
        self.error = error

    async def run(self, message: Message, run: Run) -> Message | None:
        """Run the message through; None where it was dropped.

        Raises `FlowError` where a block failed and the `error:` chain, if any, failed too.
        """
        if run.trace is None:
            return await self._recovered(message, run)
        began = run.clock.monotonic()
        run.trace.write("flow.started", message, flow=self.name)
        try:
            result = await self._recovered(message, run)
        except FlowError as error:
            run.trace.write("flow.failed", message, flow=self.name, error=error)
            raise
        kind = "flow.dropped" if result is None else "flow.completed"
        duration = int((run.clock.monotonic() - began) * 1e9)
        run.trace.write(kind, result or message, flow=self.name, duration=duration)
        return result

    async def _recovered(self, message: Message, run: Run) -> Message | None:
        try:
            return await self.chain.run(message, run)
        except BlockError as error:
            if self.error is None:
                raise
            failure = error
        message.set("error", error_variable(failure, self.name))
        try:
            return await self.error.run(message, run)
        except BlockError as error:
            raise FlowError(f"error path: {error}") from error


class FlowHandle:
    """A flow named by a block before it is built: flows may call each other in circles."""

    __slots__ = ("flow", "name")

    flow: Flow

    def __init__(self, name: str) -> None:
        self.name = name
