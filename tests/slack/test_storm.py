"""Replicas of a Slack bot on one Redis, of which one is killed: `bench.slack_storm`, but small."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.slack_storm import storm
from bench.storm_events import Weather


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
async def test_each_post_is_answered_once_and_in_order_though_a_replica_is_killed(
    redis_url: str, tmp_path: Path
) -> None:
    """FB-53, FB-73, FB-74, FB-76. What the killed one had begun is taken over after 15 seconds."""
    weather = Weather(
        events=75, threads=10, replicas=2, rate=25.0, latency=0.1, kill_every=1.5, kills=1
    )
    outcome = await storm(weather, redis_url, tmp_path)
    assert [] == outcome.faults
    assert (1, 60) == (outcome.kills, outcome.posts)
