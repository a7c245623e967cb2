"""Services whose sources run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from flowrt.service import Service
from tests.services import load


class Carrier(NamedTuple):
    """What carries messages from flow to flow: a store, and the service that uses it."""

    storage: str
    service: str


carrier = Carrier("memory:", "test")
"""What services of a test have; the fixture `carried` sets it."""

IN_PROCESS = pytest.mark.parametrize("carried", ["memory"], indirect=True)
"""A test of what is so only where messages live and die with the process."""


def listening(type_: str, subject: str, **settings: Any) -> dict[str, Any]:
    """The source of a flow."""
    return {"type": type_, "settings": {"subject": subject, **settings}}


def flow(name: str, *chain: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A flow entry."""
    return {"name": name, "process": list(chain), **more}


def document(*entries: dict[str, Any]) -> dict[str, Any]:
    """A service of these flows."""
    return {"service": {"name": carrier.service}, "flows": list(entries)}


@asynccontextmanager
async def serving(
    folder: Path, *entries: dict[str, Any], grace: float = 10.0, **options: Any
) -> AsyncIterator[Service]:
    """The service, with its sources started."""
    trace = options.pop("trace", None)
    service = load(folder, document(*entries), carrier.storage, **options)
    await service.start(sources=True, trace=trace)
    try:
        yield service
    finally:
        await service.stop(grace=grace)
