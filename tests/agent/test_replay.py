"""`replay`: the request at a turn is, byte for byte as JSON, the one that the model was sent."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from flowrt.ids import new_id
from tests.agent.replaying import Talk, play, talks


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(talk=talks)
def test_every_request_of_a_conversation_is_given_back_on_sqlite(talk: Talk) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lacking = asyncio.run(play(talk, Path(folder), f"sqlite:{folder}/state.db", "t"))
    forgetful = any("forget" in each.rounds for each in talk.exchanges)
    assert forgetful or not lacking


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(talk=talks)
def test_every_request_of_a_conversation_is_given_back_on_redis(talk: Talk, redis_url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(talk, Path(folder), redis_url, new_id()))
