"""The source `slack` in Socket Mode: what people say, once, whatever the connections do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowrt.testing import FakeSlackAPI
from tests.slack.app import ECHO
from tests.slack.socket_app import connected
from tests.sources.gate import GATE, Gate


@pytest.fixture
def slack() -> Iterator[FakeSlackAPI]:
    with FakeSlackAPI() as fake:
        yield fake
    assert [] == fake.refused


async def test_an_event_is_acknowledged_before_the_flow_has_ended(
    tmp_path: Path, slack: FakeSlackAPI
) -> None:
    Gate.opened = asyncio.Event()
    async with connected(tmp_path, GATE, *ECHO, slack=slack) as app:
        socket = await app.sockets.opened()
        assert await socket.send(app.events.mention("hi")).settled()
        assert [] == app.texts
        Gate.opened.set()
        await app.settle()
    assert ["hi"] == app.texts
