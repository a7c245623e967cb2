"""A client without a flow, its clock in the test's hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from flowrt.connectors.http_client.client import HttpClient
from flowrt.connectors.http_client.exchange import Answer, Request
from flowrt.connectors.http_client.settings import HttpClientSettings
from flowrt.errors import ConnectorError
from tests.storage.hands import HandClock


class Sender:
    """Sends GETs, unless told otherwise; waits move `clock` and take no time."""

    def __init__(self, url: str, **settings: Any) -> None:
        made = HttpClientSettings.model_validate({"baseURL": url, **settings})
        self.client = HttpClient("api", made)
        self.clock = HandClock()

    async def get(self, path: str = "/x", **more: Any) -> Answer:
        request = Request(**{"method": "GET", "path": path, **more})
        return await self.client.send(request, self.clock)

    async def failure(self, path: str = "/x", **more: Any) -> str:
        try:
            answer = await self.get(path, **more)
        except ConnectorError as error:
            return str(error)
        raise AssertionError(f"it did not fail: {answer}")


@asynccontextmanager
async def sender(url: str, **settings: Any) -> AsyncIterator[Sender]:
    """A client that is closed at the end."""
    made = Sender(url, **settings)
    try:
        yield made
    finally:
        await made.client.close()
