"""`flowrt run`: a service that stays up."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from flowrt.cli.admin import OFF, Admin, parse_address
from flowrt.cli.arguments import lines, seconds
from flowrt.cli.exits import DONE
from flowrt.cli.watching import Watch
from flowrt.clock import SystemClock
from flowrt.errors import CallError, ConfigError, FlowrtError, describe
from flowrt.observe.log import get_logger
from flowrt.observe.masking import mask_text
from flowrt.observe.trace import Trace
from flowrt.service import Service

if TYPE_CHECKING:
    from flowrt.observe.metrics import Metrics

FILES = 65_536
"""Open files that are enough, where the system would let the process have more."""

LOOK = 0.5
"""Seconds between two looks at the files."""

_log = get_logger("flowrt.run")


class RunOptions(NamedTuple):
    """The options of `flowrt run`, as given."""

    config: str
    storage: str | None
    env_file: str | None
    admin: str
    watch: bool
    grace: str
    traces: str | None


def run_command(options: RunOptions) -> int:
    """Serve until a signal ends it; 0 where it stopped in order."""
    grace = seconds(options.grace, "--grace") or 0.0
    if options.admin != OFF:
        parse_address(options.admin)
    service = _load(options)
    _allow_files()
    with lines(options.traces, "--traces") as file:
        clock = SystemClock()
        trace = Trace(lambda line: print(line, file=file, flush=True), clock) if file else None
        asyncio.run(Running(options, service, trace, grace).run())
    return DONE


def _allow_files() -> None:
    """Let the process have as many files as it may: the default of 1,024 is for `select`."""
    if sys.platform != "win32":
        import resource

        now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if now != resource.RLIM_INFINITY and now < FILES:
            enough = FILES if most == resource.RLIM_INFINITY else min(most, FILES)
            resource.setrlimit(resource.RLIMIT_NOFILE, (enough, most))


def _load(options: RunOptions) -> Service:
    return Service.load(options.config, storage=options.storage, env_file=options.env_file)


class Running:
    """One process that serves: the service, its admin port, and what signals do to them."""

    def __init__(
        self, options: RunOptions, service: Service, trace: Trace | None, grace: float
    ) -> None:
        self._options = options
        self._service = service
        self._grace = grace
        self._not_ready = "starting"
        self._retiring: dict[asyncio.Task[None], Service] = {}
        self._ending = asyncio.Event()
        self._metrics = self._make_metrics()
        self._trace = self._counted(trace)
        self._watch = Watch(options.config, options.env_file) if options.watch else None
        if self._watch is not None:
            # Now, before anything starts: a change in the meantime is one.
            self._watch.add(service.config)

    async def run(self) -> None:
        """Start everything, stay until a signal, stop everything."""
        with _signals(self._signal):
            admin = Admin(self._why_not_ready, self._metrics)
            await admin.start(self._options.admin)
            try:
                started = await self._start(self._service)
                try:
                    if started:
                        await self._stay()
                finally:
                    await self._end()
            finally:
                await admin.stop()

    async def _start(self, service: Service, instead_of: Service | None = None) -> bool:
        """Start a service; whether it has, before a signal came."""
        if self._metrics is not None:
            self._metrics.know(service.flows)
        work = service.start(sources=True, trace=self._trace, instead_of=instead_of)
        starting = asyncio.create_task(work, name="start")
        ending = asyncio.create_task(self._ending.wait())
        await asyncio.wait((starting, ending), return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if not starting.done():
            # What it waits for may never answer.
            starting.cancel()
            await asyncio.wait((starting,))
        if starting.cancelled():
            _log.warning("stopped before it had started", service=service.name)
            return False
        starting.result()
        self._service = service
        self._not_ready = ""
        _log.info("serving", service=service.name, flows=len(service.sources))
        if not service.sources:
            _log.warning("no flow has a source: nothing will ever come in")
        return True

    async def _end(self) -> None:
        """Stop what serves, while what it has replaced comes to its end too."""
        self._not_ready = "stopping"
        _log.info("stopping", service=self._service.name)
        self._retire(self._service)
        retiring = list(self._retiring)
        await asyncio.wait(retiring)
        for task in retiring:
            task.result()

    def _retire(self, service: Service) -> None:
        """Stop a service beside what else is done; what it has under way has the grace."""
        task = asyncio.create_task(self._stopped(service), name="stop")
        self._retiring[task] = service

    async def _stopped(self, service: Service) -> None:
        await service.stop(grace=self._grace)
        _log.info("stopped", service=service.name)

    def _why_not_ready(self) -> str:
        return self._not_ready or self._service.not_ready()

    async def _stay(self) -> None:
        if self._watch is None:
            await self._ending.wait()
            return
        while not self._ending.is_set():
            try:
                async with asyncio.timeout(LOOK):
                    await self._ending.wait()
            except TimeoutError:
                self._forget_retired()
                if changed := self._watch.changed():
                    await self._reload(self._watch, changed)

    def _forget_retired(self) -> None:
        for task in [task for task in self._retiring if task.done()]:
            del self._retiring[task]
            if (error := task.exception()) is not None:
                _log.error("the service before it did not stop in order", error=describe(error))

    async def _reload(self, watch: Watch, changed: list[str]) -> None:
        """Put a new service in the place of the old one, unless the new one cannot be had.

        Both run for a moment, so that nobody finds the port closed.
        """
        try:
            new = _load(self._options)
        except (ConfigError, CallError) as error:
            told = mask_text(str(error)).splitlines()
            _log.error("the change does not load; the service goes on as it was", faults=told)
            return
        watch.add(new.config)
        old = self._service
        try:
            started = await self._start(new, instead_of=old)
        except FlowrtError as error:
            text = "the changed service does not start; the one before it goes on"
            _log.error(text, error=mask_text(str(error)))
            await new.stop(grace=0.0)
            return
        if not started:
            await new.stop(grace=0.0)
            return
        _log.info("reloaded", changed=changed)
        self._retire(old)

    def _signal(self, name: str) -> None:
        if self._ending.is_set():
            _log.warning("a second signal: what is under way is cut off", signal=name)
            self._grace = 0.0
            for service in (self._service, *self._retiring.values()):
                service.cut_off()
            return
        _log.info("no new work from now on; a second signal ends at once", signal=name)
        self._ending.set()

    def _make_metrics(self) -> Metrics | None:
        if self._options.admin == OFF or find_spec("prometheus_client") is None:
            return None
        from flowrt.observe.metrics import Metrics

        return Metrics(lambda: self._service.waiting())

    def _counted(self, trace: Trace | None) -> Trace | None:
        if self._metrics is None:
            return trace
        from flowrt.observe.metrics import CountingTrace

        return CountingTrace(self._metrics, self._service.clock, trace)


@contextmanager
def _signals(handle: Callable[[str], None]) -> Iterator[None]:
    """Have SIGTERM and SIGINT call `handle` in the running event loop."""
    loop = asyncio.get_running_loop()

    def received(number: int, _: object) -> None:
        loop.call_soon_threadsafe(handle, signal.Signals(number).name)

    # Not the loop's own handlers, which Windows does not have.
    before = {number: signal.signal(number, received) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
