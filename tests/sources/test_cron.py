"""The source `cron`, its time in the test's hand: nothing here waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.observe.log import capture_logs
from flowrt.service import Service
from tests.blocks.chains import BROKEN, HANG, NOTE, Hang, Note, payload, variable
from tests.blocks.control.waiting_clock import WaitingClock
from tests.services import load
from tests.sources.serving import document, flow

Lines = list[dict[str, Any]]


def cron(schedule: str = "*/2 * * * * *", **settings: Any) -> dict[str, Any]:
    return {"type": "cron", "settings": {"schedule": schedule, **settings}}


@asynccontextmanager
async def ticking(
    folder: Path, *chain: dict[str, Any], source: dict[str, Any], **options: Any
) -> AsyncIterator[tuple[Service, WaitingClock]]:
    """A service whose flow `tick` has the source."""
    clock = options.pop("clock", None) or WaitingClock()
    entry = flow("tick", *chain, source=source)
    service = load(folder, document(entry), clock=clock, **options)
    await service.start(sources=True)
    # The first sleep has to be there before the clock moves.
    for _ in range(5):
        await asyncio.sleep(0)
    try:
        yield service, clock
    finally:
        await service.stop(grace=1)


def logs() -> Lines:
    lines: Lines = []
    capture_logs(lines.append)
    return lines


async def test_a_flow_gets_a_message_at_each_time(tmp_path: Path) -> None:
    source = cron(payload='{"schedule": settings.schedule}', correlationID="nightly")
    async with ticking(tmp_path, NOTE, source=source) as (_, clock):
        await clock.pass_time(7, until=lambda: len(Note.seen) == 3)
    assert [{"schedule": "*/2 * * * * *"}] * 3 == [message.body for message in Note.seen]
    assert {"nightly"} == {message.correlation_id for message in Note.seen}
    assert 3 == len({message.event_id for message in Note.seen})


async def test_without_a_payload_the_body_is_null(tmp_path: Path) -> None:
    async with ticking(tmp_path, NOTE, source=cron("@every 3s")) as (_, clock):
        await clock.pass_time(3, until=lambda: Note.seen)
    assert [(None, {})] == [(message.body, dict(message.vars)) for message in Note.seen]


async def test_a_source_may_name_a_connector(tmp_path: Path) -> None:
    entry = document(flow("tick", NOTE, source={"connector": "clock", **cron()}))
    entry["connectors"] = [{"name": "clock", "type": "cron"}]
    del entry["flows"][0]["source"]["type"]
    clock = WaitingClock()
    service = load(tmp_path, entry, clock=clock)
    await service.start(sources=True)
    await asyncio.sleep(0)
    await clock.pass_time(2, until=lambda: Note.seen)
    await service.stop()
    assert 1 == len(Note.seen)


async def test_a_time_is_skipped_while_the_run_before_it_is_under_way(tmp_path: Path) -> None:
    lines = logs()
    async with ticking(tmp_path, NOTE, HANG, source=cron()) as (_, clock):
        await clock.pass_time(6.5, until=lambda: Hang.begun == 1)
    assert 1 == len(Note.seen)
    skipped = [line["at"] for line in lines if "was skipped" in line["event"]]
    assert ["2026-01-01T00:00:04+00:00", "2026-01-01T00:00:06+00:00"] == skipped
    assert 1 == Hang.cancelled


async def test_a_missed_time_is_not_made_up_for(tmp_path: Path) -> None:
    lines = logs()
    async with ticking(tmp_path, NOTE, source=cron("0 0 * * * *")) as (_, clock):
        clock.advance(3 * 3600 + 1800)  # the machine sleeps
        await clock.pass_time(0.25)
        assert [] == Note.seen
        clock.advance(1795)
        await clock.pass_time(10, until=lambda: Note.seen)
    assert 1 == len(Note.seen)
    assert ["2026-01-01T01:00:00+00:00"] == [
        line["at"] for line in lines if line["event"] == "a scheduled time was missed"
    ]


async def test_a_wall_clock_that_runs_back_does_not_repeat_a_time(tmp_path: Path) -> None:
    async with ticking(tmp_path, NOTE, source=cron("*/4 * * * * *")) as (_, clock):
        await clock.pass_time(4, until=lambda: len(Note.seen) == 1)
        clock.advance(-3)
        await clock.pass_time(5)
        assert 1 == len(Note.seen)
        await clock.pass_time(2, until=lambda: len(Note.seen) == 2)


@pytest.mark.parametrize("broken", [BROKEN, payload("body.missing")])
async def test_a_run_that_fails_is_told_and_the_next_comes(
    tmp_path: Path, broken: dict[str, Any]
) -> None:
    lines = logs()
    async with ticking(tmp_path, NOTE, broken, source=cron()) as (_, clock):
        await clock.pass_time(4, until=lambda: len(Note.seen) == 2)
    assert ["a scheduled run failed"] * 2 == [line["event"] for line in lines]
    assert Note.seen[0].event_id == lines[0]["event_id"]


async def test_a_payload_that_fails_is_told(tmp_path: Path) -> None:
    lines = logs()
    async with ticking(tmp_path, NOTE, source=cron(payload="[1][int(settings.schedule)]")) as both:
        await both[1].pass_time(2, until=lambda: lines)
    assert ["a scheduled run failed"] == [line["event"] for line in lines]
    assert [] == Note.seen


async def test_of_two_replicas_one_fires_and_the_other_takes_over(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'state.db'}"
    clock = WaitingClock()
    options = {"source": cron(), "storage": store, "clock": clock}
    async with ticking(tmp_path, variable("by", "1"), NOTE, **options) as (first, _):
        await clock.pass_time(2, until=lambda: (len(Note.seen), clock.asleep) == (1, 1))
        async with ticking(tmp_path, variable("by", "2"), NOTE, **options):
            for fired in (2, 3):
                # Not before both have looked at this time and wait for the next.
                await clock.pass_time(
                    2, until=lambda fired=fired: (len(Note.seen), clock.asleep) == (fired, 2)
                )
            await first.stop()
            await clock.pass_time(2, until=lambda: len(Note.seen) == 4)
    assert [1, 1, 1, 2] == [message.vars["by"] for message in Note.seen]


async def test_a_run_under_way_at_the_stop_is_finished_and_keeps_the_lease(
    tmp_path: Path,
) -> None:
    store = f"sqlite:{tmp_path / 'state.db'}"
    clock = WaitingClock()
    options = {"source": cron(), "storage": store, "clock": clock}
    async with ticking(tmp_path, HANG, **options) as (first, _):
        await clock.pass_time(2, until=lambda: Hang.begun == 1)
        async with ticking(tmp_path, NOTE, **options):
            stopping = asyncio.create_task(first.stop(grace=0.2))
            await clock.pass_time(2)
            assert [] == Note.seen
            await stopping
            await clock.pass_time(2, until=lambda: Note.seen)
    assert 1 == Hang.cancelled


async def test_it_starts_again_after_a_stop(tmp_path: Path) -> None:
    async with ticking(tmp_path, NOTE, source=cron()) as (service, clock):
        await clock.pass_time(2, until=lambda: len(Note.seen) == 1)
        await service.stop()
        await clock.pass_time(4)
        assert 1 == len(Note.seen)
        await service.start(sources=True)
        await asyncio.sleep(0)
        await clock.pass_time(2, until=lambda: len(Note.seen) == 2)


async def test_an_invoke_does_not_wait_for_the_time(tmp_path: Path) -> None:
    async with load(tmp_path, document(flow("tick", payload("1"), source=cron()))) as service:
        result = await service.invoke("tick", None)
    assert result.message is not None
    assert 1 == result.message.body


@pytest.mark.parametrize(
    "settings",
    [
        {"schedule": "*/5 * * * *"},
        {"schedule": "@every 0s"},
        {"schedule": 5},
        {"schedule": None},
        {"timezone": "Mars/Olympus"},
        {"timezone": "../etc/passwd"},
        {"payload": "now("},
        {"payload": "unknown + 1"},
        {"correlationId": "x"},
    ],
)
def test_settings_that_cannot_work_have_their_place(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    entry = document(flow("tick", source=cron(**{"schedule": "@hourly", **settings})))
    with pytest.raises(ConfigError, match=r"service\.yaml:\d+:\d+ flows\.tick\.source"):
        load(tmp_path, entry)
