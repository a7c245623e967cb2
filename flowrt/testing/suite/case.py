"""One case: its service is made, its messages are sent, what came is checked."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from flowrt.clock import use_clock
from flowrt.config.faults import nearest
from flowrt.engine.debug import DebugPlan, Probe
from flowrt.engine.outward import stay_here
from flowrt.errors import CallError, FlowError, FlowrtError
from flowrt.ids import seed
from flowrt.message import Outcome
from flowrt.observe.log import capture_logs
from flowrt.observe.trace import Trace
from flowrt.service import GRACE, Result
from flowrt.testing.suite.asked import ModelLog
from flowrt.testing.suite.check import (
    CannotRun,
    Failure,
    check_events,
    check_requests,
    check_result,
    check_spy,
)
from flowrt.testing.suite.clock import CaseClock
from flowrt.testing.suite.load import SuiteFile
from flowrt.testing.suite.meanwhile import Companion, TurnEvents
from flowrt.testing.suite.model import Case, Input, Meanwhile, Turn
from flowrt.testing.suite.recording import Entry
from flowrt.testing.suite.standins import Cast
from flowrt.testing.suite.stored import check_memory
from flowrt.testing.suite.world import Configs, make_service

Status = Literal["passed", "failed", "errored", "skipped", "notRun"]


@dataclass(slots=True)
class CaseResult:
    """How a case went. `error` says why it could not run, `logs` are its log lines."""

    name: str
    status: Status
    elapsed: float = 0.0
    failures: list[Failure] = field(default_factory=list)
    error: str = ""
    logs: list[dict[str, Any]] = field(default_factory=list)
    outcome: dict[str, Any] | None = None
    recorded: list[Entry] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """One line."""
        if self.error:
            return self.error.splitlines()[0]
        return self.failures[0].summary if self.failures else ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the cases of a run share: the loaded configs, and how real providers are treated.

    `record` asks them and keeps what they answer. `traces` is a folder for trace records.
    """

    configs: Configs
    live: bool = False
    record: bool = False
    traces: Path | None = None


async def run_case(
    file: SuiteFile, case: Case, around: Surroundings, recorded: list[Entry]
) -> CaseResult:
    """Run one case. Call it in a task of its own: clock, ids and logs are those of its context."""
    if case.skip is not None:
        return CaseResult(case.name, "skipped", error=case.skip)
    result = CaseResult(case.name, "passed")
    began = time.perf_counter()
    capture_logs(result.logs.append)
    try:
        await _Played(file, case, around, recorded, result).run()
    except (FlowrtError, CannotRun) as error:
        result.status, result.error = "errored", str(error)
    else:
        result.status = "failed" if result.failures else "passed"
    result.elapsed = time.perf_counter() - began
    return result


class _Played:
    """One run of a case."""

    def __init__(
        self,
        file: SuiteFile,
        case: Case,
        around: Surroundings,
        recorded: list[Entry],
        result: CaseResult,
    ) -> None:
        self._suite = file.suite
        self._case = case
        self._result = result
        self._traces = around.traces
        self._trace: Trace | None = None
        self._path = file.path
        self._clock = CaseClock()
        self._log = ModelLog()
        self._live = around.live
        self._events = TurnEvents()
        scripts = {**file.suite.models, **case.models}
        self._cast = Cast(
            scripts,
            None if around.record else recorded,
            self._log,
            self._clock,
            live=around.live,
        )
        env = {**file.suite.env, **case.env}
        config, faults = around.configs.load(file.config, env, frozenset(scripts))
        known = [connector.name for connector in config.connectors]
        for name in scripts:
            if name not in known:
                close = nearest(name, known)
                hint = f"did you mean {close!r}?" if close else f"there are {', '.join(known)}"
                raise CallError(f"models: the service has no connector {name!r}; {hint}")
        self._service = make_service(config, faults, self._cast, self._clock)

    async def run(self) -> None:
        use_clock(self._clock)
        seed(1)
        if not self._live:
            stay_here(self._log.problems.append)
        if (now := self._case.now or self._suite.now) is not None:
            self._clock.set(now)
        probe = self._service.debug(self._plan())
        turns = self._case.messages()
        with self._traced():
            await self._converse(turns, probe)

    @contextmanager
    def _traced(self) -> Iterator[None]:
        """Trace records in a file of the case's own, where a folder is given."""
        if self._traces is None:
            yield
            return
        words = re.sub(r"[^A-Za-z0-9]+", "-", self._case.name).strip("-")[:80]
        path = self._traces / f"{self._path.stem}.{words}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            self._trace = Trace(lambda line: print(line, file=file), self._clock)
            yield

    async def _converse(self, turns: list[Turn], probe: Probe) -> None:
        sources = self._suite.sources if self._case.sources is None else self._case.sources
        # A port would be taken, and a schedule fire at what `after` lets pass.
        await self._service.start(
            sources=sources, outer=False, trace=self._trace, watcher=self._events
        )
        try:
            # Background work takes its first step, so that `after` finds it waiting.
            await asyncio.sleep(0)
            for number, turn in enumerate(turns, 1):
                place = f"turn {number}: " if self._case.turns else ""
                await self._turn(turn, place)
            await self._at_the_end(probe)
        finally:
            await self._service.stop()

    def _plan(self) -> DebugPlan:
        mocks = {**self._suite.mocks, **self._case.mocks}
        return DebugPlan(
            spies=list(self._case.spies),
            mocks={address: mock for address, mock in mocks.items() if mock is not None},
        )

    async def _turn(self, turn: Turn, place: str) -> None:
        if turn.now is not None and turn is not self._case:
            self._clock.set(turn.now)
        self._clock.advance(turn.after)
        await self._settle()
        self._log.requests.clear()
        self._events.begin()
        given = turn.input
        message = self._suite.inputs[given] if isinstance(given, str) else given
        flow = turn.flow or self._case.flow or self._suite.flow

        def send(entry: Meanwhile, data: Any) -> Awaitable[Result]:
            return self._invoke(entry.flow or flow, Input(data=data))

        companion = Companion(turn.meanwhile, self._events, self._clock, send)
        result, failures = await companion.beside(self._invoke(flow, message), f"{place}meanwhile")
        # What a message sets going in the background belongs to its turn, requests included, and
        # is seen by the spies.
        await self._service.drain()
        self._result.outcome = outcome_json(result)
        failures += check_result(turn.expect, result, f"{place}expect")
        failures += check_requests(turn.requests, self._log.views(), f"{place}requests")
        failures += check_events(turn.events, self._events.seen, f"{place}events")
        self._result.failures += failures

    async def _settle(self) -> None:
        """See to the end what the time that has passed has brought about."""
        try:
            async with asyncio.timeout(GRACE):
                await self._clock.settle()
        except TimeoutError:
            raise CannotRun(
                f"what waited for the time of `after` or `now` is still at work {GRACE:g} s later"
            ) from None
        await self._service.drain()

    async def _invoke(self, flow: str, message: Input) -> Result:
        timeout = self._suite.timeout if self._case.timeout is None else self._case.timeout
        try:
            async with asyncio.timeout(timeout or None):
                return await self._service.invoke(
                    flow,
                    message.body,
                    message.vars,
                    raw=message.content_type is not None,
                    watcher=self._events,
                    trace=self._trace,
                )
        except TimeoutError:
            error = FlowError(f"the flow took longer than the timeout of {timeout:g}s")
            return Result(Outcome.FAILED, error=error)

    async def _at_the_end(self, probe: Probe) -> None:
        for address, check in self._case.spies.items():
            self._result.failures += check_spy(check, probe.crossings[address], address)
        self._result.failures += await check_memory(self._case.memory, self._service)
        told = "\n".join(failure.detail for failure in self._result.failures)
        self._result.failures += [
            Failure("connectors", text) for text in self._log.problems if text not in told
        ]
        self._result.recorded = self._cast.entries


def outcome_json(result: Result) -> dict[str, Any]:
    """How a flow ended, in the form of an envelope."""
    if result.error is not None:
        return {"error": str(result.error)}
    if result.message is None:
        return {"dropped": True}
    return {"result": result.message.to_json()}
