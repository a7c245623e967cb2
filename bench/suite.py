"""Cases a second of `flowrt test`, and how much longer than the same work in a bare loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from bench.measure import median, report
from flowrt.testing.suite.runner import SuiteOptions, run_suites

CASES = 100
RUNS = 11

SERVICE: dict[str, Any] = {
    "service": {"name": "bench"},
    "flows": [
        {
            "name": "main",
            "process": [
                {"type": "set-variable", "settings": {"name": "a", "value": "body.n"}},
                {
                    "type": "if",
                    "condition": "body.n > 50",
                    "then": {
                        "process": [
                            {"type": "set-variable", "settings": {"name": "big", "value": "true"}}
                        ]
                    },
                },
                {"type": "set-payload", "value": '{"n": body.n, "twice": [vars.a, vars.a]}'},
            ],
        }
    ],
}


def suite() -> dict[str, Any]:
    """A suite of small cases."""
    cases = [
        {
            "name": f"case {n}",
            "input": {"data": {"n": n}},
            "expect": {"body": {"n": n, "twice": [n, n]}, "that": [f"body.n == {n}"]},
        }
        for n in range(CASES)
    ]
    return {"flow": "main", "cases": cases}


def bare(n: int) -> bool:
    """What one case does, without flowrt."""
    body: dict[str, Any] = {"n": n}
    variables: dict[str, Any] = {"a": body["n"]}
    if body["n"] > 50:
        variables["big"] = True
    body = {"n": body["n"], "twice": [variables["a"], variables["a"]]}
    return body == {"n": n, "twice": [n, n]} and body["n"] == n


def main() -> None:
    """Time a warm process and a fresh one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench_test.yaml"
        (Path(folder) / "bench.yaml").write_text(yaml.safe_dump(SERVICE), encoding="utf-8")
        path.write_text(yaml.safe_dump(suite()), encoding="utf-8")
        warm = median([_warm(path) for _ in range(RUNS)][1:])
        fresh = median([_fresh(path) for _ in range(RUNS)][1:])
    began = time.perf_counter()
    for _ in range(100):
        for n in range(CASES):
            assert bare(n)
    loop = (time.perf_counter() - began) / 100
    report(
        "suite",
        cases=CASES,
        seconds_fresh_process=fresh,
        cases_per_second_warm=round(CASES / warm),
        us_per_case=round(warm / CASES * 1e6),
        us_bare=round(loop / CASES * 1e6, 2),
        times_bare=round(warm / loop),
    )


def _warm(path: Path) -> float:
    began = time.perf_counter()
    (result,) = asyncio.run(run_suites([str(path)], SuiteOptions()))
    assert CASES == result.count("passed")
    return time.perf_counter() - began


def _fresh(path: Path) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "flowrt.cli.main", "test", str(path)],
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
