"""Suites for tests: a service and a suite beside it, written out and run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from flowrt.testing.suite.case import CaseResult
from flowrt.testing.suite.runner import SuiteOptions, run_suites
from tests.services import flows

STEP = {
    "type": "set-payload",
    "name": "step",
    "value": '{"n": body.n, "text": "n is " + toJson(body.n)}',
}
COUNTING = flows(main=[STEP])


def write(folder: Path, service: dict[str, Any], suite: dict[str, Any], name: str = "s") -> Path:
    """Write both and give the suite's place."""
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(service, sort_keys=False))
    path = folder / f"{name}_test.yaml"
    path.write_text(yaml.safe_dump(suite, sort_keys=False))
    return path


async def run(
    folder: Path, service: dict[str, Any], suite: dict[str, Any], **options: Any
) -> list[CaseResult]:
    """Run the suite and give how its cases went."""
    (result,) = await run_suites([str(write(folder, service, suite))], SuiteOptions(**options))
    assert "" == result.error, result.error
    return result.cases


async def run_one(
    folder: Path, service: dict[str, Any], case: dict[str, Any], **top: Any
) -> CaseResult:
    """Run a suite of one case for the flow `main`."""
    suite = {"flow": "main", **top, "cases": [{"name": "it", **case}]}
    (result,) = await run(folder, service, suite)
    return result


def told(result: CaseResult) -> str:
    """All that a result says is wrong."""
    lines = [f"{each.summary}\n{each.detail}" for each in result.failures]
    return "\n".join([*lines, result.error])
