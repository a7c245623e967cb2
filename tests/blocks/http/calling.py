"""Flows that call an API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flowrt.message import Message
from flowrt.service import Result
from tests.services import flows, load


def document(url: str, *chain: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """A service with a flow `main` and a connector `api` at `url`."""
    connector = {"name": "api", "type": "http-client", "settings": {"baseURL": url, **settings}}
    return flows(main=list(chain)) | {"connectors": [connector]}


def rest(**settings: Any) -> dict[str, Any]:
    return {"type": "rest", "settings": {"connector": "api", **settings}}


def dynamic(**settings: Any) -> dict[str, Any]:
    given = {"connector": "api", "method": "body.method", "path": "body.path", **settings}
    return {"type": "rest-dynamic", "settings": given}


async def call(
    folder: Path,
    url: str,
    block: dict[str, Any],
    data: Any = None,
    *,
    connection: dict[str, Any] | None = None,
    **variables: Any,
) -> Result:
    """Send `data` through a flow of one block."""
    async with load(folder, document(url, block, **(connection or {}))) as service:
        return await service.invoke("main", data, variables)


async def answer(folder: Path, url: str, block: dict[str, Any], data: Any = None) -> Message:
    """The message that comes out."""
    result = await call(folder, url, block, data)
    assert result.message is not None, result.error
    return result.message


async def failure(
    folder: Path, url: str, block: dict[str, Any], data: Any = None, **options: Any
) -> str:
    """The text of the failure."""
    result = await call(folder, url, block, data, **options)
    assert result.error is not None, result.message
    return str(result.error)
