"""Runs suites: their cases side by side in one warm process, or each in one of its own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flowrt.errors import CallError, ConfigError
from flowrt.testing.suite.case import CaseResult, Surroundings, run_case
from flowrt.testing.suite.load import SuiteFile, find_suites, load_suite
from flowrt.testing.suite.model import Case
from flowrt.testing.suite.recording import Recording
from flowrt.testing.suite.world import Configs

CaseRunner = Callable[[SuiteFile, Case, list[dict[str, object]]], Awaitable[CaseResult]]


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """How suites are run.

    `env` lies over the shell's environment and under that of suites and cases. `only` are the names
    of the cases to run, all where empty. `traces` is a folder for a file of records of each case.
    `run` runs one case; without it, they run in this process.
    """

    config: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    parallel: int = 1
    fail_fast: bool = False
    only: Sequence[str] = ()
    live: bool = False
    record: bool = False
    traces: Path | None = None
    run: CaseRunner | None = None


@dataclass(slots=True)
class SuiteResult:
    """How the cases of one file went. `error` says why the file could not be read."""

    path: Path
    config: Path | None = None
    flow: str = ""
    elapsed: float = 0.0
    cases: list[CaseResult] = field(default_factory=list)
    error: str = ""
    file: SuiteFile | None = None

    def count(self, status: str) -> int:
        """How many cases ended so; a file that could not be read is one that errored."""
        unread = 1 if self.error and status == "errored" else 0
        return unread + sum(case.status == status for case in self.cases)


async def run_suites(
    paths: Iterable[str],
    options: SuiteOptions,
    done: Callable[[SuiteResult], object] = lambda result: None,
) -> list[SuiteResult]:
    """Run every suite at `paths` and give how they went, in order; `done` is told of each.

    Raises `CallError` for a path that is no suite, and where no case has a wanted name.
    """
    loaded = [_load(path, options) for path in find_suites(list(paths))]
    if options.only and not any(result.cases for result in loaded):
        raise CallError(f"no case is called {' or '.join(map(repr, options.only))}")
    running = _Running(options)
    started = [running.start(result) for result in loaded]
    for result, tasks in zip(loaded, started, strict=True):
        began = time.perf_counter()
        result.cases = [await task for task in tasks]
        result.elapsed = time.perf_counter() - began
        running.finish(result)
        done(result)
    return loaded


def _load(path: Path, options: SuiteOptions) -> SuiteResult:
    try:
        file = load_suite(path, options.config)
    except (ConfigError, CallError) as error:
        return SuiteResult(path, error=str(error))
    wanted = [case for case in file.suite.cases if not options.only or case.name in options.only]
    # Not run as long as nothing has run them.
    waiting = [CaseResult(case.name, "notRun") for case in wanted]
    return SuiteResult(path, file.config, file.suite.flow, cases=waiting, file=file)


class _Running:
    """The cases under way."""

    def __init__(self, options: SuiteOptions) -> None:
        self._options = options
        self._slots = asyncio.Semaphore(max(1, options.parallel))
        self._around = Surroundings(
            Configs({**os.environ, **options.env}),
            live=options.live,
            record=options.record,
            traces=options.traces,
        )
        self._stopped = False
        self._recordings: dict[Path, Recording] = {}

    def start(self, result: SuiteResult) -> list[asyncio.Task[CaseResult]]:
        """Start the cases of a suite: each in a task, whose context is its own."""
        if result.file is None:
            self._stopped = self._stopped or self._options.fail_fast
            return []
        try:
            self._recordings[result.path] = Recording.of(result.path)
        except CallError as error:
            result.error = str(error)
            return []
        cases = {case.name: case for case in result.file.suite.cases}
        return [
            asyncio.create_task(self._case(result.file, cases[waiting.name], waiting))
            for waiting in result.cases
        ]

    async def _case(self, file: SuiteFile, case: Case, waiting: CaseResult) -> CaseResult:
        async with self._slots:
            if self._stopped:
                return waiting
            recorded = self._recordings[file.path].cases.get(case.name, [])
            if self._options.run is not None:
                result = await self._options.run(file, case, recorded)
            else:
                result = await run_case(file, case, self._around, recorded)
            if self._options.fail_fast and result.status in ("failed", "errored"):
                self._stopped = True
            return result

    def finish(self, result: SuiteResult) -> None:
        """Keep what the cases recorded."""
        if not self._options.record or result.path not in self._recordings:
            return
        recording = self._recordings[result.path]
        for case in result.cases:
            if case.recorded:
                recording.put(case.name, case.recorded)
        recording.save()
