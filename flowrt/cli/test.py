"""`flowrt test`: suites of cases, offline."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from flowrt.cli.exits import DONE, FAILED, WRONG
from flowrt.config.dotenv import parse_dotenv
from flowrt.errors import CallError, ConfigError
from flowrt.testing.suite.report import junit_xml, report_json, suite_text, totals_text
from flowrt.testing.suite.runner import CaseRunner, SuiteOptions, SuiteResult, run_suites


class TestRun(NamedTuple):
    """The options of `flowrt test`, as given."""

    paths: list[str]
    config: str | None
    env_file: str | None
    traces_dir: str | None
    junit: str | None
    report_json: str | None
    parallel: int | None
    fail_fast: bool
    cases: list[str]
    live: bool
    record: bool
    isolated: bool
    verbose: bool


def test_command(options: TestRun) -> int:
    """Run the suites. The exit code: 0 all passed, 1 a case failed, 2 a case could not run."""
    if options.isolated and options.record:
        raise CallError("--record runs in one process; leave --isolated out")
    began = time.perf_counter()
    to_stdout = "-" in (options.report_json, options.junit)
    results = asyncio.run(_run(options, quiet=to_stdout))
    wall = time.perf_counter() - began
    if not to_stdout:
        print(totals_text(results, wall))
    _write(
        options.report_json, json.dumps(report_json(results, wall), ensure_ascii=False, indent=1)
    )
    _write(options.junit, junit_xml(results))
    return exit_code(results)


async def _run(options: TestRun, *, quiet: bool) -> list[SuiteResult]:
    settings = SuiteOptions(
        config=options.config,
        env=_env(options.env_file),
        parallel=options.parallel or os.cpu_count() or 1,
        fail_fast=options.fail_fast,
        only=options.cases,
        live=options.live,
        record=options.record,
        traces=_folder(options.traces_dir),
        run=_in_processes(options) if options.isolated else None,
    )

    def tell(result: SuiteResult) -> None:
        if not quiet:
            print(suite_text(result, verbose=options.verbose), flush=True)

    return await run_suites(options.paths, settings, tell)


def exit_code(results: Sequence[SuiteResult]) -> int:
    """2 goes before 1: a case that could not run says nothing about the flow."""
    if any(result.count("errored") for result in results):
        return WRONG
    return FAILED if any(result.count("failed") for result in results) else DONE


def _env(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        values, faults = parse_dotenv(Path(path).read_bytes(), path)
    except OSError as error:
        raise CallError(f"--env-file: cannot read {path!r}: {error.strerror}") from error
    if faults:
        raise ConfigError(faults)
    return values


def _folder(path: str | None) -> Path | None:
    if path is None:
        return None
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise CallError(f"--traces-dir: cannot make {path!r}: {error.strerror}") from error
    return folder


def _in_processes(options: TestRun) -> CaseRunner:
    from flowrt.cli.test_process import case_in_process

    return lambda file, case, _: case_in_process(file, case, options)


def _write(path: str | None, text: str) -> None:
    if path is None:
        return
    if path == "-":
        print(text)
        return
    try:
        Path(path).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    except OSError as error:
        raise CallError(f"cannot write {path!r}: {error.strerror}") from error
