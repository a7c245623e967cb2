"""Services whose sources run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from flowrt.service import Service
from tests.services import load


def listening(type_: str, subject: str, **settings: Any) -> dict[str, Any]:
    """The source of a flow."""
    return {"type": type_, "settings": {"subject": subject, **settings}}


def flow(name: str, *chain: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A flow entry."""
    return {"name": name, "process": list(chain), **more}


def document(*entries: dict[str, Any]) -> dict[str, Any]:
    """A service of these flows."""
    return {"service": {"name": "test"}, "flows": list(entries)}


@asynccontextmanager
async def serving(
    folder: Path, *entries: dict[str, Any], grace: float = 10.0, **options: Any
) -> AsyncIterator[Service]:
    """The service, with its sources started."""
    trace = options.pop("trace", None)
    service = load(folder, document(*entries), **options)
    await service.start(sources=True, trace=trace)
    try:
        yield service
    finally:
        await service.stop(grace=grace)
