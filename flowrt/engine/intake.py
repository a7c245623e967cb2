"""What happens in a running service without an `invoke`: sources, and background work of blocks."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from flowrt.engine.build import Built
from flowrt.engine.flow import Flow
from flowrt.engine.run import Run, Runtime, Watcher
from flowrt.engine.source import Deliver
from flowrt.errors import describe
from flowrt.ids import new_id
from flowrt.message import Message
from flowrt.observe.log import get_logger

if TYPE_CHECKING:
    from flowrt.engine.delivery import Delivery
    from flowrt.observe.trace import Trace


class Intake:
    """Starts what sends the flows of a service messages; each becomes a run of its flow."""

    def __init__(
        self, built: Built, runtime: Runtime, trace: Trace | None, watcher: Watcher | None
    ) -> None:
        self._built = built
        self._runtime = runtime
        self._trace = trace
        self._watcher = watcher
        self._log = get_logger("flowrt.intake")

    async def start(self, stack: AsyncExitStack, *, inner: bool) -> None:
        """Start the inner or the outer sources, in file order; `stack` stops them.

        With the inner ones all are opened: the outer ones stop before what they have taken ends.
        """
        for name, source in self._built.sources.items():
            deliver = self._deliver_to(self._built.flows[name])
            if inner:
                await source.open(deliver, self._runtime)
                stack.push_async_callback(source.close)
            if source.inner is inner:
                await source.start(deliver, self._runtime)
                stack.push_async_callback(source.stop)

    def start_background(self, stack: AsyncExitStack) -> None:
        """Start what blocks do beside messages; `stack` cancels it."""
        for what, work in self._built.background:
            task = asyncio.create_task(work(self._runtime), name=f"background of {what}")
            task.add_done_callback(self._ended)
            stack.push_async_callback(_cancel, task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("background work failed", task=task.get_name(), error=describe(error))

    def _deliver_to(self, flow: Flow) -> Deliver:
        async def deliver(message: Message, delivery: Delivery | None = None) -> Message | None:
            trace = self._trace
            if trace is not None:
                message.trace_id = message.trace_id or new_id()
                trace.write("source.receive", message, flow=flow.name)
            run = Run(
                self._runtime, flow.name, trace=trace, watcher=self._watcher, delivery=delivery
            )
            return await flow.run(message, run)

        return deliver


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
