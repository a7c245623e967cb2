"""Bots for tests that take their events over Socket Mode from a fake Slack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from flowrt.clock import SystemClock
from flowrt.connectors.slack.socket_connection import LINGER, QUIET
from flowrt.service import Service
from flowrt.testing import FakeSlackAPI, SlackEvents
from flowrt.testing.slack_api import APP_TOKEN, TOKEN
from tests.services import load
from tests.slack.app import ECHO


def socket_bot(
    base_url: str, *chain: dict[str, Any], flow: dict[str, Any] | None = None, **settings: Any
) -> dict[str, Any]:
    """A service whose flow `bot` has a `slack` source in Socket Mode, and no `http` connector."""
    entry = {
        "name": "bot",
        "source": {"type": "slack", "settings": {"mode": "socket"} | settings},
        "process": list(chain or ECHO),
    }
    team = {"botToken": TOKEN, "appToken": APP_TOKEN, "apiBaseURL": base_url}
    return {
        "service": {"name": "test"},
        "connectors": [{"name": "team", "type": "slack", "settings": team}],
        "flows": [entry | (flow or {})],
    }


class SocketApp:
    """A running bot."""

    def __init__(self, service: Service, slack: FakeSlackAPI) -> None:
        self.service = service
        self.slack = slack
        self.sockets = slack.sockets
        self.events = SlackEvents()

    async def settle(self) -> None:
        """Wait until the flows have ended."""
        await self.service.drain()

    @property
    def texts(self) -> list[str]:
        """What the posts of the app show."""
        return [post.text for post in self.slack.posts]


@asynccontextmanager
async def connected(
    folder: Path,
    *chain: dict[str, Any],
    slack: FakeSlackAPI,
    flow: dict[str, Any] | None = None,
    storage: str = "memory:",
    clock: Any = None,
    **settings: Any,
) -> AsyncIterator[SocketApp]:
    """A bot with this chain, else `ECHO`."""
    folder.mkdir(exist_ok=True)
    document = socket_bot(slack.base_url, *chain, flow=flow, **settings)
    service = load(folder, document, storage, clock=clock)
    await service.start(sources=True)
    try:
        yield SocketApp(service, slack)
    finally:
        await service.stop()


class Hasty(SystemClock):
    """A clock on which nobody waits between attempts to connect."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds if seconds in (QUIET, LINGER) else 0)
