"""Sources of a stranger: their start, their order, their stop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flowrt.engine import registry
from flowrt.engine.block import Settings
from flowrt.engine.source import Deliver, Source
from flowrt.errors import ConnectorError
from flowrt.message import Message
from tests.services import flows, load

EVENTS: list[str] = []


class Outer(Source[Settings]):
    """Says what happens to it, and delivers one message when it is stopped."""

    Settings = Settings

    async def start(self, deliver: Deliver, runtime: Any) -> None:
        self._deliver = deliver
        EVENTS.append(f"start {self.site.flow}")

    async def stop(self) -> None:
        result = await self._deliver(Message("late"))
        assert result is not None
        EVENTS.append(f"stop {self.site.flow} after {result.body}")


class Inner(Outer):
    """Fed by flows."""

    inner = True


class Broken(Source[Settings]):
    """Does not start."""

    Settings = Settings

    async def start(self, deliver: Deliver, runtime: Any) -> None:
        raise ConnectorError("the port is taken")


@pytest.fixture(autouse=True)
def foreign_sources() -> None:
    EVENTS.clear()
    for kind in (Outer, Inner, Broken):
        registry.sources.add(f"test-{kind.__name__.lower()}", kind)


def document(**sources: str) -> dict[str, Any]:
    made = flows(**{name: [] for name in sources})
    for entry, type_ in zip(made["flows"], sources.values(), strict=True):
        entry["source"] = {"type": f"test-{type_}"}
    return made


async def test_what_flows_feed_starts_first_and_stops_last(tmp_path: Path) -> None:
    service = load(tmp_path, document(a="outer", b="inner", c="outer"))
    await service.start(sources=True)
    await service.stop()
    assert ["start b", "start a", "start c"] == EVENTS[:3]
    assert ["stop c after late", "stop a after late", "stop b after late"] == EVENTS[3:]


async def test_without_sources_none_is_started(tmp_path: Path) -> None:
    async with load(tmp_path, document(a="outer", b="inner")):
        pass
    assert [] == EVENTS


async def test_a_source_that_cannot_start_stops_those_that_did(tmp_path: Path) -> None:
    service = load(tmp_path, document(a="outer", b="broken", c="outer"))
    before = asyncio.all_tasks()
    with pytest.raises(ConnectorError, match="the port is taken"):
        await service.start(sources=True)
    assert ["start a", "stop a after late"] == EVENTS
    assert before == asyncio.all_tasks()
