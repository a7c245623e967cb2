"""Processes that die in the middle of their work on the record of agents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that several processes can use."""
    if request.param == "redis":
        shared: str = request.getfixturevalue("quick_redis_url")
        return shared
    return f"sqlite:{tmp_path}/state.db"


def test_a_crash_between_any_two_writes_loses_nothing_acknowledged(url: str) -> None:
    command = [sys.executable, "-m", "tests.storage.agents.crashing", url, "1", "32"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (0, "") == (ended.returncode, ended.stderr)
