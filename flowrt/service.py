"""One running service: its connectors, flows and stores."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from flowrt.agent.live import LiveRuns
from flowrt.clock import Clock, SystemClock
from flowrt.config.faults import nearest
from flowrt.config.load import Config, load_config
from flowrt.engine.build import Built, build
from flowrt.engine.intake import Intake
from flowrt.engine.run import Run, Watcher
from flowrt.engine.streams import Streams
from flowrt.engine.transport import Transport
from flowrt.engine.transports import control_over, transport_over
from flowrt.errors import CallError, ConfigError, Fault, FlowError, describe
from flowrt.ids import new_id
from flowrt.memory.memories import Memories
from flowrt.message import Message, Outcome, clean
from flowrt.observe.log import get_logger
from flowrt.observe.masking import add_secrets
from flowrt.observe.trace import Trace
from flowrt.storage.tiers import Storage

if TYPE_CHECKING:
    from flowrt.engine.debug import DebugPlan, Probe
    from flowrt.llm.embedding import EmbeddingModel

GRACE = 10.0
"""Seconds that `stop` waits for what is under way before it cancels it."""


@dataclass(frozen=True, slots=True)
class Result:
    """How an invocation ended. `message` is None where it was dropped or failed."""

    outcome: Outcome
    message: Message | None = None
    error: FlowError | None = None


def _embeddings(built: Built, environ: Mapping[str, str]) -> EmbeddingModel | None:
    if not environ.get("FLOWRT_EMBEDDINGS"):
        return None
    # Here: few deployments name one, and every start would pay for it.
    from flowrt.connectors.embeddings import memory_embeddings

    return memory_embeddings(built.connectors, environ)


class Service:
    """A service built from a config; start it, invoke its flows, stop it.

    The same object may be started again after it was stopped, also in another event loop: whatever
    belongs to a loop is made by `start` or on first use, and let go by `stop`.
    """

    def __init__(
        self,
        config: Config,
        built: Built,
        storage: Storage,
        *,
        memories: Memories | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name = config.name
        self.config = config
        self.storage = storage
        self.memories = memories or Memories(storage)
        self.memories.spawn = self.spawn
        self.clock: Clock = clock or SystemClock()
        self._control = control_over(storage)
        self.live = LiveRuns(self._control)
        self.transport: Transport = transport_over(storage)
        self.streams: dict[str, Streams] = {
            name: connector
            for name, connector in built.connectors.items()
            if isinstance(connector, Streams)
        }
        self._built = built
        self._flows = built.flows
        self._running = AsyncExitStack()
        self._grace: float | None = GRACE
        self._draining: asyncio.Timeout | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._log = get_logger("flowrt.service")

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        storage: str | None = None,
        volatile: str | None = None,
        env_file: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> Service:
        """Load a file or directory and bind everything in it, touching no network and no store.

        `storage` and `volatile` are store URLs (``sqlite:PATH``, ``redis://…``, ``memory:``);
        unset, `FLOWRT_STORAGE` and `FLOWRT_VOLATILE` decide, then ``sqlite:.flowrt/state.db`` and
        the process's own memory. `FLOWRT_MEMORY` names another place for what agents with an
        `agentId` remember, `FLOWRT_EMBEDDINGS` the connector that their memory is searched by
        meaning with. Raises `ConfigError` with every fault of the file.
        """
        faults: list[Fault] = []
        config = load_config(path, env_file=env_file, environ=environ, faults=faults)
        add_secrets(config.env.secrets.values())
        built = build(config, faults)
        tiers = Storage.from_urls(config.name, storage, volatile, environ=environ)
        environ = os.environ if environ is None else environ
        embeds = _embeddings(built, environ)
        memories = Memories.from_environ(tiers, environ, embeds)
        return cls(config, built, tiers, memories=memories, clock=clock)

    @property
    def flows(self) -> list[str]:
        """The names of the flows, in file order."""
        return list(self._flows)

    async def start(
        self,
        *,
        sources: bool = False,
        outer: bool = True,
        trace: Trace | None = None,
        watcher: Watcher | None = None,
        instead_of: Service | None = None,
    ) -> None:
        """Start the connectors, in file order, and with `sources` what sends the flows messages.

        Without sources, flows run where they are invoked; without `outer` ones, also where other
        flows send them messages, and nothing listens to a port or a clock. `trace` and `watcher`
        are of the messages of sources. Once this has returned, the ports of `instead_of` are
        served by this service; stop that one then. Stores open on first use. Raises `ConfigError`
        where a source is of a type that is not installed, and `CallError` where the deployment's
        memory is sealed and to be embedded.
        """
        if sources and self._built.unknown_sources:
            raise ConfigError(self._built.unknown_sources)
        self.memories.check()
        async with AsyncExitStack() as starting:
            for connector in self._built.connectors.values():
                if instead_of is not None:
                    connector.inherit(list(instead_of._built.connectors.values()))
                await connector.start()
                starting.push_async_callback(connector.stop)
            starting.push_async_callback(self._control.close)
            starting.push_async_callback(self.transport.close)
            intake = Intake(self._built, self, trace, watcher)
            if sources:
                await intake.start(starting, inner=True)
            # Between the two: what outer sources have sent in may need the inner ones to end.
            starting.push_async_callback(self.drain)
            if sources and outer:
                await intake.start(starting, inner=False)
                for connector in self._built.connectors.values():
                    await connector.open()
            if sources:
                intake.start_background(starting)
                if self.memories.embeds:
                    self.spawn(self.memories.renew(self.name), "memory vectors of another model")
            self._running = starting.pop_all()

    async def stop(self, *, grace: float | None = GRACE) -> None:
        """Stop in the reverse order of the start, and close the stores.

        No new messages come in; what is under way is given `grace` seconds to end, None: for ever.
        """
        self._grace = grace
        try:
            await self._running.aclose()
        finally:
            try:
                await self.memories.close()
            finally:
                await self.storage.close()

    async def drain(self) -> None:
        """Wait for what is under way; what takes longer than the grace is cut off."""
        self.transport.retire()
        try:
            async with asyncio.timeout(self._grace) as self._draining:
                await self._quiet()
        except TimeoutError:
            late = set(self._background)
            for task in late:
                self._log.warning("background work was cut off", task=task.get_name())
                task.cancel()
            if late:
                await asyncio.wait(late)
        finally:
            self._draining = None

    async def _quiet(self) -> None:
        await self.transport.idle()
        while self._background:
            await asyncio.wait(self._background)
            # Background work may have sent messages, which may have started more of it.
            await self.transport.idle()

    def cut_off(self) -> None:
        """Give what a stop waits for no more time."""
        self._grace = 0.0
        if self._draining is not None:
            self._draining.reschedule(asyncio.get_running_loop().time())

    def waiting(self) -> dict[str, int]:
        """How many messages wait to be worked on, by what they wait for."""
        sources = self._built.sources.items()
        counts = {f"flow {name!r}": source.waiting for name, source in sources if not source.inner}
        return counts | self.transport.waiting()

    def not_ready(self) -> str:
        """Why a source of the started service cannot take messages yet; empty where all can."""
        reasons = (source.not_ready for source in self._built.sources.values())
        return next(filter(None, reasons), "")

    @property
    def sources(self) -> list[str]:
        """The names of the flows that have a source, in file order."""
        return list(self._built.sources)

    def debug(self, plan: DebugPlan) -> Probe:
        """Put in the plan's breakpoint, spies and mocks; the probe tells what they saw.

        Raises `CallError` for an address that does not resolve.
        """
        from flowrt.engine.debug import instrument

        return instrument(self._built.chains, plan, self._built.scope)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def invoke(
        self,
        flow: str | None = None,
        data: Any = None,
        variables: Mapping[str, Any] | None = None,
        *,
        raw: bool = False,
        watcher: Watcher | None = None,
        trace: Trace | None = None,
    ) -> Result:
        """Send a message through a flow and wait for its end; `flow` None takes the only one.

        `data` and `variables` are JSON values; with `raw`, `data` is raw content, a mapping of
        `contentType` and `rawData`. A flow that fails gives a `Result`, not an
        exception. Raises `CallError` where there is no such flow.
        """
        name = self._flow_name(flow)
        message = Message(clean(data), clean(dict(variables or {})))
        message.raw = raw
        if trace is not None:
            message.trace_id = new_id()
        run = Run(self, name, trace=trace, watcher=watcher)
        try:
            result = await self._flows[name].run(message, run)
        except FlowError as error:
            return Result(Outcome.FAILED, error=error)
        if result is None:
            return Result(Outcome.DROPPED)
        return Result(Outcome.STOPPED if result.stop else Outcome.COMPLETED, result)

    def spawn(self, work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
        """Run `work` in the background, held until it ends; a failure is logged under `what`."""
        task = asyncio.create_task(work, name=what)
        # A task nobody holds may be collected in the middle of its work.
        self._background.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("background work failed", task=task.get_name(), error=describe(error))

    def _flow_name(self, flow: str | None) -> str:
        if flow is None:
            if len(self._flows) == 1:
                return next(iter(self._flows))
            raise CallError(
                f"the service has {len(self._flows)} flows ({', '.join(self._flows)}); "
                "say which with --flow"
            )
        if flow not in self._flows:
            close = nearest(flow, self.flows)
            hint = f"did you mean {close!r}?" if close else f"it has {', '.join(self._flows)}"
            raise CallError(f"the service has no flow {flow!r}; {hint}")
        return flow
