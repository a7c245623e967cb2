"""Topics: `publish-event` and the source `events`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.clock import SystemClock
from flowrt.errors import ConfigError
from flowrt.message import Outcome
from flowrt.observe.trace import Trace
from tests.blocks.chains import BROKEN, NOTE, RAW, Note, payload, run, variable
from tests.services import load
from tests.sources.serving import IN_PROCESS, document, flow, listening, serving

pytestmark = pytest.mark.usefixtures("carried")

PUBLISH = {"type": "publish-event", "subject": '"news"'}
NEWS = listening("events", "news")


async def test_every_subscriber_gets_a_copy_of_its_own(tmp_path: Path) -> None:
    async with serving(
        tmp_path,
        flow("main", variable("x", '{"n": 1}'), PUBLISH, payload('"after"')),
        flow("a", NOTE, source=NEWS),
        flow("b", payload('"changed"'), NOTE, source=NEWS),
    ) as service:
        result = await service.invoke("main", {"n": 1})
    assert result.message is not None
    assert "after" == result.message.body
    assert [{"n": 1}, "changed"] == sorted((seen.body for seen in Note.seen), key=str, reverse=True)
    assert [{"x": {"n": 1}}] * 2 == [dict(seen.vars) for seen in Note.seen]
    ids = {seen.event_id for seen in Note.seen} | {result.message.event_id}
    assert 3 == len(ids)


async def test_the_value_is_what_is_sent_and_the_message_passes_unchanged(tmp_path: Path) -> None:
    publish = {**PUBLISH, "value": '{"id": body.rawData}'}
    async with serving(
        tmp_path, flow("main", RAW, publish), flow("a", NOTE, source=NEWS)
    ) as service:
        result = await service.invoke("main")
    assert result.message is not None
    assert result.message.raw
    assert [({"id": "text"}, False)] == [(seen.body, seen.raw) for seen in Note.seen]


async def test_raw_content_is_sent_as_raw_content(tmp_path: Path) -> None:
    async with serving(
        tmp_path, flow("main", RAW, PUBLISH), flow("a", NOTE, source=NEWS)
    ) as service:
        await service.invoke("main")
    assert [True] == [seen.raw for seen in Note.seen]


async def test_the_subject_is_computed(tmp_path: Path) -> None:
    publish = {"type": "publish-event", "subject": '"news." + body.kind'}
    async with serving(
        tmp_path,
        flow("main", publish),
        flow("a", NOTE, source=listening("events", "news.a")),
        flow("b", NOTE, source=listening("events", "news.b")),
    ) as service:
        for kind in ("a", "b", "b"):
            await service.invoke("main", {"kind": kind})
    assert ["a", "b", "b"] == sorted(seen.body["kind"] for seen in Note.seen)


@IN_PROCESS
@pytest.mark.parametrize("subject", ["null", '""', '" "'])
async def test_a_subject_that_is_none_is_an_error(tmp_path: Path, subject: str) -> None:
    error = (await run(tmp_path, [{"type": "publish-event", "subject": subject}])).error
    assert "publish-event subject is missing" in str(error)


@IN_PROCESS
@pytest.mark.parametrize("subject", ['"news"', '"system:deployed"'])
async def test_an_event_that_nobody_hears_leaves_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], subject: str
) -> None:
    chain = [{"type": "publish-event", "subject": subject}]
    assert Outcome.COMPLETED == (await run(tmp_path, chain, "same")).outcome
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert "an event was heard by nobody" == record["event"]
    assert subject.strip('"') in record["reason"]


@IN_PROCESS
async def test_invoke_starts_no_source(tmp_path: Path) -> None:
    service = load(tmp_path, document(flow("main", PUBLISH), flow("a", NOTE, source=NEWS)))
    async with service:
        await service.invoke("main")
    assert [] == Note.seen


async def test_a_subscriber_that_fails_leaves_a_line_and_hears_the_next_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(
        tmp_path, flow("main", PUBLISH), flow("a", NOTE, BROKEN, source=NEWS)
    ) as service:
        for _ in range(20):
            assert Outcome.COMPLETED == (await service.invoke("main")).outcome
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert 20 == len(Note.seen) == len(lines)
    assert 'block "test-broken": boom' == lines[0]["error"]


async def test_an_events_flow_recovers_by_its_error_chain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(
        tmp_path, flow("main", PUBLISH), flow("a", BROKEN, error=[NOTE], source=NEWS)
    ) as service:
        await service.invoke("main")
    assert ["a"] == [seen.vars["error"]["flow"] for seen in Note.seen]
    assert "" == capsys.readouterr().err


async def test_one_trace_id_follows_the_message(tmp_path: Path) -> None:
    lines: list[str] = []
    trace = Trace(lines.append, SystemClock())
    async with serving(
        tmp_path, flow("main", PUBLISH), flow("a", NOTE, source=NEWS), trace=trace
    ) as service:
        await service.invoke("main", trace=trace)
    records = [json.loads(line) for line in lines]
    assert 1 == len({record["traceId"] for record in records})
    assert ["a"] == [record["flow"] for record in records if record["kind"] == "source.receive"]


@IN_PROCESS
async def test_the_same_service_listens_again_after_a_stop(tmp_path: Path) -> None:
    service = load(tmp_path, document(flow("main", PUBLISH), flow("a", NOTE, source=NEWS)))
    for _ in range(2):
        await service.start(sources=True)
        await service.invoke("main")
        await service.stop()
    assert 2 == len(Note.seen)


@IN_PROCESS
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"type": "events"}, "subject"),
        (listening("events", ""), "subject"),
        (listening("events", "system:x"), "system: leaves the service"),
        (listening("events", "x", listeners=0), "listeners"),
        (listening("events", "x", listener=1), "did you mean 'listeners'"),
        ({"connector": "events", "settings": {}}, "subject"),
    ],
)
def test_what_cannot_work_does_not_load(tmp_path: Path, source: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        load(tmp_path, document(flow("main", source=source)))
    (fault,) = caught.value.faults
    assert fault.position is not None
    assert fault.path.startswith("flows.main.source")


async def test_a_source_may_be_named_in_place_of_a_connector(tmp_path: Path) -> None:
    source = {"connector": "events", "settings": {"subject": "news"}}
    async with serving(tmp_path, flow("main", PUBLISH), flow("a", NOTE, source=source)) as service:
        await service.invoke("main")
    assert 1 == len(Note.seen)


@IN_PROCESS
@pytest.mark.parametrize("key", ["type", "connector"])
async def test_a_source_that_is_not_installed_loads_and_is_not_served(
    tmp_path: Path, key: str
) -> None:
    source = {key: "carrier-pigeon", "settings": {"loft": 7}}
    service = load(tmp_path, document(flow("main", payload("1"), source=source)))
    async with service:
        assert Outcome.COMPLETED == (await service.invoke("main")).outcome
    with pytest.raises(ConfigError, match="unknown source type 'carrier-pigeon'") as caught:
        await service.start(sources=True)
    (fault,) = caught.value.faults
    assert f"flows.main.source.{key}" == fault.path
    assert fault.position is not None
