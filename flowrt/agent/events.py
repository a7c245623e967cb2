"""What an agent tells while it works (dialect 5.8): to its `events` chain and to a watcher."""

from __future__ import annotations

import asyncio
from typing import Any

from flowrt.agent.live import RunStopped
from flowrt.agent.spec import EventSpec
from flowrt.engine.run import Run
from flowrt.errors import BlockError
from flowrt.llm.model import Delta
from flowrt.message import Message
from flowrt.observe.log import get_logger

EVENT_TYPES = frozenset(
    {
        "turn_start",
        "text",
        "thinking",
        "tool_input",
        "custom",
        "tool_call",
        "tool_authorization",
        "tool_result",
        "turn_end",
        "compaction_start",
        "compaction_end",
        "signal",
        "thread_title",
        "guardrail",
        "done",
        "error",
    }
)

_log = get_logger("flowrt.agent.events")


class AgentEvents:
    """The events of one run. An event nobody wants is never built: ask `wanted` first.

    The chain gets each event as the body of a message of its own, with the agent's variables. Its
    result is thrown away and its failure logged; where it asks to stop, `stopped` is set.
    """

    __slots__ = ("_message", "_run", "_spec", "_streaming", "_watcher", "stopped")

    def __init__(self, spec: EventSpec | None, message: Message, run: Run) -> None:
        self._spec = spec
        self._message = message
        self._run = run
        self._watcher = run.watcher
        self._streaming = bool(spec and spec.stream) or bool(run.watcher and run.watcher.delta)
        self.stopped = False

    def wanted(self, kind: str) -> bool:
        """Whether somebody listens to events of this type."""
        return self._watcher is not None or (self._spec is not None and kind in self._spec.emit)

    async def emit(self, kind: str, iteration: int, **fields: Any) -> None:
        """Tell one event. Fields that are None are left out."""
        if not self.wanted(kind):
            return
        event = {"type": kind, "iteration": iteration}
        event |= {name: value for name, value in fields.items() if value is not None}
        if self._watcher is not None:
            self._watcher.event(event)
        if self._spec is not None and kind in self._spec.emit:
            await self._observe(event)

    def check(self) -> None:
        """Raise `RunStopped` where the chain asked to stop."""
        if self.stopped:
            raise RunStopped("the events chain stopped the run")

    def deltas(self, iteration: int) -> DeltaStream | None:
        """Where the pieces of a streaming reply go, or None where nobody wants them."""
        return DeltaStream(self, iteration) if self._streaming else None

    def deliver(self, delta: Delta) -> None:
        """Give a piece to the watcher at once."""
        if self._watcher is not None and self._watcher.delta is not None:
            self._watcher.delta(delta)

    @property
    def streams_to_chain(self) -> bool:
        """Whether pieces become events of the chain."""
        return self._spec is not None and self._spec.stream

    async def _observe(self, event: dict[str, Any]) -> None:
        assert self._spec is not None
        message = Message(event, self._message.vars, correlation_id=self._message.correlation_id)
        message.trace_id = self._message.trace_id
        try:
            result = await self._spec.chain.run(message, self._run)
        except BlockError as error:
            _log.error("an events chain failed", event_type=event["type"], error=str(error))
            return
        if result is not None and result.stop:
            self.stopped = True


class DeltaStream:
    """Carries pieces from the model's callback, which cannot wait, to the chain, in order."""

    def __init__(self, events: AgentEvents, iteration: int) -> None:
        self._events = events
        self._iteration = iteration
        self._queue: asyncio.Queue[Delta | None] = asyncio.Queue()
        self._pump: asyncio.Task[None] | None = None

    def __call__(self, delta: Delta) -> None:
        self._events.deliver(delta)
        if self._events.streams_to_chain and self._events.wanted(delta.kind):
            self._queue.put_nowait(delta)
            if self._pump is None:
                self._pump = asyncio.create_task(self._run())

    async def drain(self) -> None:
        """Wait until the chain has seen every piece."""
        if self._pump is not None:
            self._queue.put_nowait(None)
            await self._pump

    def abandon(self) -> None:
        """The call was cut off: what was not told yet stays untold."""
        if self._pump is not None:
            self._pump.cancel()

    async def _run(self) -> None:
        while (delta := await self._queue.get()) is not None:
            await self._events.emit(
                delta.kind,
                self._iteration,
                text=delta.text,
                index=delta.index,
                tool=delta.tool or None,
                toolCallId=delta.tool_call_id or None,
            )
