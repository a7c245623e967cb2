"""A process of `flowrt run` while something around it fails; `bench/faults.py` runs more of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bench import faults

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def unhurt(figures: dict[str, Any], *, most_lines: int = 80) -> dict[str, Any]:
    """What holds in any weather; the figures."""
    assert (0, 0, 0) == (figures["inside_shown"], figures["tracebacks"], figures["exit"]), figures
    assert figures["log_lines"] < most_lines, figures
    assert figures["grown_mb"] < 40, figures
    return figures


@pytest.mark.parametrize("how", ["freeze", "kill"])
def test_nothing_that_was_taken_is_lost_while_redis_is_away(tmp_path: Path, how: str) -> None:
    figures = unhurt(faults.redis_gone(tmp_path, 1.5, how), most_lines=200)
    assert 0 == figures["lost"] < figures["taken"]
    assert {"200", "500"} >= set(figures["answers"])
    assert figures["recovered_s"] < 20


def test_a_provider_that_is_down_fails_requests_and_is_used_again(tmp_path: Path) -> None:
    figures = unhurt(faults.provider_down(tmp_path, 1.5), most_lines=300)
    assert {"200", "500"} == set(figures["answers"])
    assert figures["recovered_s"] < 10


def test_malformed_requests_cost_next_to_nothing(tmp_path: Path) -> None:
    figures = unhurt(faults.bad_requests(tmp_path, 500))
    assert {"0", "200", "400", "404", "405", "408", "413"} >= set(figures["answers"])


def test_bodies_that_are_too_large_are_refused(tmp_path: Path) -> None:
    figures = unhurt(faults.large_bodies(tmp_path, 20))
    assert {"413"} == set(figures["answers"])


def test_a_crowd_of_connections_leaves_the_admin_port_alive(tmp_path: Path) -> None:
    figures = unhurt(faults.crowd(tmp_path, 300))
    assert figures["health_p50_ms"] < 1000
    # 0: beyond those that are told so, a connection is closed without a word.
    assert {"0", "200", "503"} >= set(figures["answers"])


def test_forged_requests_are_refused(tmp_path: Path) -> None:
    figures = unhurt(faults.forged(tmp_path, 200), most_lines=300)
    assert {"500": 200} == figures["answers"]
    assert 200 == figures["signed"]
