"""Services that answer over HTTP, and a client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import httpx2

from flowrt.connectors.http import HttpConnector
from flowrt.service import Service
from tests.services import load
from tests.sources.serving import document, flow

HERE = {"HTTP_HOST": "127.0.0.1", "HTTP_PORT": "0"}
"""An environment in which the connector that nobody declares listens on a port of its own."""


def route(path: str, *chain: dict[str, Any], name: str = "main", **settings: Any) -> dict[str, Any]:
    """A flow at a path; `flow` in the settings are more keys of the flow itself."""
    more = settings.pop("flow", {})
    source = {"type": "http", "settings": {"path": path, **settings}}
    return flow(name, *chain, source=source, **more)


class Web:
    """A running service and a client of it."""

    def __init__(self, service: Service, client: httpx2.AsyncClient, port: int) -> None:
        self.service = service
        self.client = client
        self.port = port

    async def get(self, path: str = "/", **options: Any) -> httpx2.Response:
        """GET."""
        return await self.client.get(path, **options)

    async def post(self, path: str = "/", body: Any = None, **options: Any) -> httpx2.Response:
        """POST of JSON, or of what the options say."""
        if body is not None:
            options["json"] = body
        return await self.client.post(path, **options)

    async def raw(self, *pieces: bytes) -> bytes:
        """Send bytes as they are and read until the server closes."""
        async with self.connection() as (reader, writer):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            return await reader.read()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A bare connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()


@asynccontextmanager
async def web(
    folder: Path,
    *entries: dict[str, Any],
    connector: dict[str, Any] | None = None,
    grace: float = 10.0,
    **parts: Any,
) -> AsyncIterator[Web]:
    """Serve these flows; `connector` are settings of the connector, `parts` of the document."""
    content = document(*entries) | parts
    if connector is not None:
        content.setdefault("connectors", []).append(
            {"name": "http", "type": "http", "settings": connector}
        )
    service = load(folder, content, environ=HERE)
    await service.start(sources=True)
    server = service.streams["http"]
    assert isinstance(server, HttpConnector)
    try:
        async with httpx2.AsyncClient(base_url=server.url, timeout=20) as client:
            yield Web(service, client, int(server.url.rpartition(":")[2]))
    finally:
        await service.stop(grace=grace)


class Events:
    """The frames of a stream, one after the other."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.aiter_lines()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[str, str]:
        event, data = "", []
        async for line in self._lines:
            if not line and data:
                return event, "\n".join(data)
            name, _, value = line.partition(": ")
            if name == "event":
                event = value
            elif name == "data":
                data.append(value)
        raise StopAsyncIteration


async def frames(client: httpx2.AsyncClient, path: str, body: Any = None) -> list[tuple[str, Any]]:
    """Every frame of a stream; data that is JSON decoded."""
    async with client.stream("POST", path, json=body) as response:
        assert 200 == response.status_code, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        return [(event, _decoded(data)) async for event, data in Events(response)]


def _decoded(data: str) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data
