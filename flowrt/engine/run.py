"""What one invocation carries beside its message."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from flowrt.clock import Clock

if TYPE_CHECKING:
    import asyncio

    from flowrt.agent.live import LiveRuns
    from flowrt.engine.delivery import Delivery
    from flowrt.engine.streams import Streams
    from flowrt.engine.transport import Transport
    from flowrt.llm.model import Delta
    from flowrt.memory.memories import Memories
    from flowrt.observe.trace import Trace
    from flowrt.storage.tiers import Storage


class Watcher(Protocol):
    """Somebody outside the flow who follows the agents of a run: the chat, `--events FILE`."""

    def event(self, event: dict[str, Any]) -> None:
        """An agent event (dialect 5.8), as the block's own `events` flow would see it."""
        ...

    @property
    def delta(self) -> Callable[[Delta], None] | None:
        """Called with each piece of a streaming reply; None where nobody wants pieces."""
        ...


class Runtime(Protocol):
    """What a run needs of its service."""

    name: str
    clock: Clock
    storage: Storage
    memories: Memories
    live: LiveRuns
    transport: Transport
    streams: dict[str, Streams]
    """The connectors that hold streams open, by name."""

    def spawn(self, work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
        """Run something in the background; the service holds it, logs its failure, awaits it."""
        ...


class Run:
    """One pass of a message through a flow.

    `flow` is the name of the root flow. `trace` and `watcher` are None where nobody listens.
    `claims` are the conversations that enclosing agents hold: an agent in a tool branch that works
    the same conversation must not wait for its caller. `depth` is how many flows wait for this one.
    `delivery` is how the message came, None where nobody sends it again.
    """

    __slots__ = (
        "claims",
        "clock",
        "delivery",
        "depth",
        "flow",
        "runtime",
        "storage",
        "trace",
        "watcher",
    )

    def __init__(
        self,
        runtime: Runtime,
        flow: str,
        *,
        trace: Trace | None = None,
        watcher: Watcher | None = None,
        claims: frozenset[str] = frozenset(),
        depth: int = 0,
        delivery: Delivery | None = None,
    ) -> None:
        self.runtime = runtime
        self.clock = runtime.clock
        self.storage = runtime.storage
        self.flow = flow
        self.trace = trace
        self.watcher = watcher
        self.claims = claims
        self.depth = depth
        self.delivery = delivery

    def within(self, claim: str) -> Run:
        """The same run, inside an agent that holds `claim`."""
        return Run(
            self.runtime,
            self.flow,
            trace=self.trace,
            watcher=self.watcher,
            claims=self.claims | {claim},
            depth=self.depth,
            delivery=self.delivery,
        )

    def named(self, flow: str) -> Run:
        """The same run, in a flow that this one calls and waits for."""
        return Run(
            self.runtime,
            flow,
            trace=self.trace,
            watcher=self.watcher,
            claims=self.claims,
            depth=self.depth + 1,
            delivery=self.delivery,
        )

    def detached(self, flow: str = "") -> Run:
        """The same run, in `flow` or this one, for work that outlives its caller.

        What holds a conversation is the caller's and ends with it, so the work holds none; nor is
        it done again when the message is.
        """
        return Run(self.runtime, flow or self.flow, trace=self.trace, watcher=self.watcher)
