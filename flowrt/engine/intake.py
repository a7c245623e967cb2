"""Where messages of sources come in: each becomes a run of its flow."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from flowrt.engine.build import Built
from flowrt.engine.flow import Flow
from flowrt.engine.run import Run, Runtime
from flowrt.engine.source import Deliver
from flowrt.ids import new_id
from flowrt.message import Message

if TYPE_CHECKING:
    from flowrt.observe.trace import Trace


class Intake:
    """The sources of a service while it runs."""

    def __init__(self, built: Built, runtime: Runtime, trace: Trace | None) -> None:
        self._built = built
        self._runtime = runtime
        self._trace = trace

    async def start(self, stack: AsyncExitStack, *, inner: bool) -> None:
        """Start the inner or the outer sources, in file order; `stack` stops them."""
        for name, source in self._built.sources.items():
            if source.inner is inner:
                await source.start(self._deliver_to(self._built.flows[name]), self._runtime)
                stack.push_async_callback(source.stop)

    def _deliver_to(self, flow: Flow) -> Deliver:
        async def deliver(message: Message) -> Message | None:
            trace = self._trace
            if trace is not None:
                message.trace_id = message.trace_id or new_id()
                trace.write("source.receive", message, flow=flow.name)
            return await flow.run(message, Run(self._runtime, flow.name, trace=trace))

        return deliver
