"""A case in a process of its own: nothing that it does to its process reaches the next."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

from flowrt.testing.suite.case import CaseResult
from flowrt.testing.suite.check import Failure
from flowrt.testing.suite.load import SuiteFile
from flowrt.testing.suite.model import Case

if TYPE_CHECKING:
    from flowrt.cli.test import TestRun


async def case_in_process(file: SuiteFile, case: Case, options: TestRun) -> CaseResult:
    """Run one case by a `flowrt test` of its own and read that one's report."""
    process = await asyncio.create_subprocess_exec(
        *_command(file, case, options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        raise
    try:
        (told,) = json.loads(out)["suites"][0]["cases"]
    except ValueError:
        text = (
            err.decode(errors="replace").strip() or f"its process ended with {process.returncode}"
        )
        return CaseResult(case.name, "errored", error=text)
    return CaseResult(
        case.name,
        told["status"],
        elapsed=told["elapsedMs"] / 1000,
        failures=[Failure(**each) for each in told["failures"]],
        error=told.get("error", ""),
        logs=told.get("logs", []),
        outcome=told["outcome"],
    )


def _command(file: SuiteFile, case: Case, options: TestRun) -> list[str]:
    command = [sys.executable, "-m", "flowrt.cli.main", "test", str(file.path)]
    command += ["--case", case.name, "--report-json", "-"]
    for option, value in (
        ("--config", options.config),
        ("--env-file", options.env_file),
        ("--traces-dir", options.traces_dir),
    ):
        if value is not None:
            command += [option, value]
    return [*command, "--live"] if options.live else command
