"""How long a fresh process takes, in seconds and as a multiple of importing what it must import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from bench.measure import document, median, message, report

RUNS = 11
ROOT = Path(__file__).parent.parent
FLOWRT = [sys.executable, "-m", "flowrt.cli.main"]


def main() -> None:
    """Time whole processes."""
    with tempfile.TemporaryDirectory() as folder:
        # Installed packages have bytecode; make sure that ours has, wherever it is kept.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"FLOWRT_STORAGE": f"sqlite:{folder}/state.db", "LOG_LEVEL": "error"}
        chat = Path(folder) / "chat.yaml"
        chat.write_text(yaml.safe_dump(document()), encoding="utf-8")
        commands = {
            "baseline": [sys.executable, "-c", "import typer, pydantic, yaml"],
            "help": [*FLOWRT, "--help"],
            "hello": [*FLOWRT, "invoke", "--config", str(ROOT / "samples/hello-invoke.yaml"),
                      "--data", '{"name": "Sam"}'],
            "first answer": [*FLOWRT, "invoke", "--config", str(chat),
                             "--data", json.dumps(message())],
        }  # fmt: skip
        seconds = {name: _time(command, environment) for name, command in commands.items()}
    base = seconds["baseline"]
    report(
        "startup",
        seconds=seconds,
        times_baseline={name: round(value / base, 2) for name, value in seconds.items()},
    )


def _time(command: list[str], environment: dict[str, str]) -> float:
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return median(times[1:])


if __name__ == "__main__":
    main()
