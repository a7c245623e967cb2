"""Slack apps for tests: a service with a `slack` source, a fake Slack, and a client that signs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from flowrt.connectors.http import HttpConnector
from flowrt.service import Service
from flowrt.testing import FakeSlackAPI, SlackEvents
from flowrt.testing.slack_api import TOKEN
from flowrt.testing.slack_events import SIGNING_SECRET
from tests.services import load
from tests.sources.web import HERE

ECHO = [
    {"type": "slack-reply", "connector": "team"},
    {"type": "slack-reply-finish", "connector": "team", "text": "vars.slack.text"},
]
"""Answers with what was said."""


def connector(base_url: str = "http://127.0.0.1:9/", **settings: Any) -> dict[str, Any]:
    """The connector `team`."""
    known = {"botToken": TOKEN, "signingSecret": SIGNING_SECRET, "apiBaseURL": base_url}
    return {"name": "team", "type": "slack", "settings": known | settings}


def bot(
    base_url: str, *chain: dict[str, Any], flow: dict[str, Any] | None = None, **settings: Any
) -> dict[str, Any]:
    """A service whose flow `bot` has a `slack` source; `settings` are the source's."""
    entry = {
        "name": "bot",
        "source": {"type": "slack", "settings": settings},
        "process": list(chain or ECHO),
    }
    return {
        "service": {"name": "test"},
        "connectors": [connector(base_url)],
        "flows": [entry | (flow or {})],
    }


class App:
    """A running bot: `send` is Slack sending it an event."""

    def __init__(self, service: Service, slack: FakeSlackAPI, client: httpx2.AsyncClient) -> None:
        self.service = service
        self.slack = slack
        self.client = client
        self.events = SlackEvents()
        self.model: Any = None

    async def send(self, content: Any, headers: dict[str, str] | None = None) -> httpx2.Response:
        """Send an event, or bytes, signed; `headers` go before those of the signature."""
        body, signed = self.events.signed(content)
        return await self.client.post(
            "/slack/events", content=body, headers=signed | (headers or {})
        )

    async def settle(self) -> None:
        """Wait until the flows have ended."""
        await self.service.drain()

    @property
    def texts(self) -> list[str]:
        """What the posts of the app show."""
        return [post.text for post in self.slack.posts]


@asynccontextmanager
async def serve(service: Service, slack: FakeSlackAPI) -> AsyncIterator[App]:
    """Serve a loaded bot."""
    await service.start(sources=True)
    (server,) = (each for each in service.streams.values() if isinstance(each, HttpConnector))
    try:
        async with httpx2.AsyncClient(base_url=server.url, timeout=20) as client:
            yield App(service, slack, client)
    finally:
        await service.stop()


@asynccontextmanager
async def running(
    folder: Path,
    *chain: dict[str, Any],
    flow: dict[str, Any] | None = None,
    storage: str = "memory:",
    clock: Any = None,
    **settings: Any,
) -> AsyncIterator[App]:
    """A bot with this chain, else `ECHO`."""
    with FakeSlackAPI() as slack:
        document = bot(slack.base_url, *chain, flow=flow, **settings)
        service = load(folder, document, storage, environ=HERE, clock=clock)
        async with serve(service, slack) as app:
            yield app
