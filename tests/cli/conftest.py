"""The command line as a user has it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

Flowrt = Callable[..., "subprocess.CompletedProcess[str]"]


def command(*arguments: str) -> list[str]:
    """The command that runs flowrt in this environment."""
    return [sys.executable, "-m", "flowrt.cli.main", *arguments]


def environment(**changes: str) -> dict[str, str]:
    """The environment of the process, without whatever configures flowrt here."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FLOWRT_")}
    return kept | {"FLOWRT_STRICT_REQUESTS": "1"} | changes


@pytest.fixture
def flowrt(tmp_path: Path) -> Flowrt:
    """Runs flowrt in a folder of the test's own and gives what it printed."""

    def run(
        *arguments: str, stdin: bytes | None = b"", **changes: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command(*arguments),
            cwd=tmp_path,
            env=environment(**changes),
            input=stdin,
            capture_output=True,
            timeout=60,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


@pytest.fixture
def service_file(tmp_path: Path) -> Callable[[dict[str, object]], Path]:
    """Writes a document as `service.yaml`."""

    def write(document: dict[str, object]) -> Path:
        path = tmp_path / "service.yaml"
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        return path

    return write
