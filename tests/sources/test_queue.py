"""Queues: `queue-dispatch` and the source `queue`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.message import Outcome
from flowrt.service import Result
from tests.blocks.chains import (
    BROKEN,
    DROP,
    HANG,
    MEET,
    NOTE,
    RAW,
    STOP,
    Hang,
    Meet,
    Note,
    payload,
    run,
    variable,
)
from tests.services import flows, load
from tests.sources.serving import IN_PROCESS, flow, listening, serving

pytestmark = pytest.mark.usefixtures("carried")

JOBS = listening("queue", "jobs")
SEND = {"type": "queue-dispatch", "subject": '"jobs"'}
ASK = {**SEND, "awaitReply": True}


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


async def ask(folder: Path, *worker: dict[str, Any], **settings: Any) -> Result:
    """Ask a worker; the message has a body and two variables."""
    async with serving(
        folder,
        flow("main", variable("mine", "1"), {**ASK, **settings}),
        flow("worker", *worker, source=JOBS),
    ) as service:
        return await service.invoke("main", {"n": 2}, {"both": "caller"})


async def test_an_answer_replaces_the_body_and_its_variables_are_merged(tmp_path: Path) -> None:
    result = await ask(tmp_path, payload("body.n + vars.mine"), variable("both", '"worker"'))
    assert result.message is not None
    assert 3 == result.message.body
    assert {"mine": 1, "both": "worker"} == dict(result.message.vars)


async def test_an_answer_that_is_raw_content_stays_so(tmp_path: Path) -> None:
    result = await ask(tmp_path, RAW)
    assert result.message is not None
    assert (True, "text") == (result.message.raw, result.message.body["rawData"])


async def test_an_answer_that_was_dropped_changes_nothing(tmp_path: Path) -> None:
    result = await ask(tmp_path, DROP)
    assert result.message is not None
    assert {"n": 2} == result.message.body


async def test_a_stop_of_the_worker_is_its_own(tmp_path: Path) -> None:
    result = await ask(tmp_path, payload('"stopped"'), STOP)
    assert Outcome.COMPLETED == result.outcome
    assert result.message is not None
    assert "stopped" == result.message.body


async def test_a_failure_of_the_worker_fails_the_block(tmp_path: Path) -> None:
    error = str((await ask(tmp_path, BROKEN)).error)
    assert 'block "queue-dispatch": queue \'jobs\': block "test-broken": boom' == error


async def test_an_answer_that_takes_too_long_is_not_waited_for(tmp_path: Path) -> None:
    async with serving(
        tmp_path, flow("main", {**ASK, "timeout": "10ms"}), flow("worker", HANG, source=JOBS),
        grace=0.01,
    ) as service:  # fmt: skip
        error = str((await service.invoke("main")).error)
    assert "queue 'jobs' gave no answer within 0.01s" in error


async def test_a_worker_that_takes_too_long_is_cancelled_and_its_sender_told(
    tmp_path: Path,
) -> None:
    source = listening("queue", "jobs", timeout="10ms")
    async with serving(tmp_path, flow("main", ASK), flow("worker", HANG, source=source)) as service:
        error = str((await service.invoke("main")).error)
    assert "flow 'worker' took longer than 0.01s" in error
    assert 1 == Hang.cancelled


@IN_PROCESS
async def test_a_job_is_done_once_whoever_competes_for_it(tmp_path: Path) -> None:
    async with serving(
        tmp_path,
        flow("main", SEND),
        flow("a", MEET, NOTE, source=JOBS),
        flow("b", MEET, NOTE, source=JOBS),
    ) as service:
        for number in range(100):
            await service.invoke("main", number)
    assert list(range(100)) == sorted(seen.body for seen in Note.seen)


@IN_PROCESS
@pytest.mark.parametrize(
    ("settings", "more", "most"),
    [({"listeners": 2}, {"workers": 5}, 2), ({}, {"workers": 3}, 3), ({}, {}, 8)],
)
async def test_as_many_jobs_run_at_a_time_as_there_are_listeners(
    tmp_path: Path, settings: dict[str, Any], more: dict[str, Any], most: int
) -> None:
    source = listening("queue", "jobs", **settings)
    async with serving(
        tmp_path, flow("main", SEND), flow("worker", MEET, source=source, **more)
    ) as service:
        for _ in range(50):
            await service.invoke("main")
    assert most == Meet.most


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@IN_PROCESS
async def test_a_sender_waits_while_the_queue_is_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = listening("queue", "jobs", listeners=1)
    async with serving(
        tmp_path, flow("main", SEND), flow("worker", HANG, source=source, buffer=2), grace=0.01
    ) as service:
        sends = [asyncio.create_task(service.invoke("main")) for _ in range(5)]
        await settled()
        # One is worked on and two wait in the queue.
        assert 3 == sum(task.done() for task in sends)
        assert ["senders wait: the buffer is full"] == [line["event"] for line in told(capsys)]
        for task in sends:
            task.cancel()
        await asyncio.wait(sends)


@IN_PROCESS
async def test_what_is_under_way_is_finished_before_the_service_stops(tmp_path: Path) -> None:
    """Also what a job sends on to a queue that stands before its own in the file."""
    on = {"type": "queue-dispatch", "subject": '"more"'}
    async with serving(
        tmp_path,
        flow("last", MEET, NOTE, source=listening("queue", "more", listeners=1)),
        flow("first", MEET, on, source=listening("queue", "jobs", listeners=1)),
        flow("main", SEND),
    ) as service:
        for number in range(30):
            await service.invoke("main", number)
    assert 30 == len(Note.seen)


@IN_PROCESS
async def test_what_takes_longer_than_the_grace_is_cut_off_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = listening("queue", "jobs", listeners=1)
    async with serving(
        tmp_path, flow("main", SEND), flow("worker", HANG, source=source), grace=0.01
    ) as service:
        for _ in range(3):
            await service.invoke("main")
    events = [line["event"] for line in told(capsys)]
    lost = "a message was lost: its last consumer stopped"
    assert ["a message was cut off", lost, lost] == events
    assert 1 == Hang.cancelled


@IN_PROCESS
async def test_who_waits_for_an_answer_is_told_that_the_service_stops(tmp_path: Path) -> None:
    async with serving(
        tmp_path, flow("main", ASK), flow("worker", HANG, source=JOBS), grace=0.01
    ) as service:
        asking = asyncio.create_task(service.invoke("main"))
        await settled()
    assert "the consumer stopped before its answer" in str((await asking).error)


@IN_PROCESS
async def test_a_caller_that_gives_up_withdraws_what_nobody_has_begun(tmp_path: Path) -> None:
    source = listening("queue", "jobs", listeners=1)
    async with serving(
        tmp_path, flow("main", ASK), flow("worker", NOTE, HANG, source=source), grace=0.01
    ) as service:
        asking = [asyncio.create_task(service.invoke("main", n)) for n in range(2)]
        await settled()
        asking[1].cancel()
        await asyncio.wait([asking[1]])
    await asking[0]
    assert [0] == [seen.body for seen in Note.seen]


@IN_PROCESS
async def test_a_job_that_nobody_will_do_leaves_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Outcome.COMPLETED == (await run(tmp_path, [SEND], "same")).outcome
    (line,) = told(capsys)
    assert ("a message was lost", "warning") == (line["event"], line["level"])


@IN_PROCESS
async def test_an_answer_that_nobody_will_give_is_not_waited_for(tmp_path: Path) -> None:
    error = str((await run(tmp_path, [ASK])).error)
    assert "queue 'jobs' has no listener" in error
    assert "`invoke` starts no sources" in error


@IN_PROCESS
async def test_a_queue_does_not_leave_the_service(tmp_path: Path) -> None:
    chain = [{"type": "queue-dispatch", "subject": '"system:jobs"'}]
    assert "use publish-event" in str((await run(tmp_path, chain)).error)


@IN_PROCESS
async def test_a_failed_job_that_nobody_waits_for_leaves_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(
        tmp_path, flow("main", SEND), flow("worker", BROKEN, source=JOBS)
    ) as service:
        assert Outcome.COMPLETED == (await service.invoke("main")).outcome
    assert ["a job failed"] == [line["event"] for line in told(capsys)]


@IN_PROCESS
def test_a_timeout_without_an_answer_to_wait_for_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="timeout needs awaitReply") as caught:
        load(tmp_path, flows(main=[{**SEND, "timeout": "5s"}]))
    (fault,) = caught.value.faults
    assert "flows.main.process[0].timeout" == fault.path
