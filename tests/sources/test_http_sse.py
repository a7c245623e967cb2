"""Answers of the source `http` that are streams."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConnectorError
from tests.blocks.chains import BROKEN, DROP, HANG, NOTE, RAW, Hang, Note, payload, variable
from tests.sources.gate import GATE, Gate
from tests.sources.serving import flow, listening
from tests.sources.web import Events, frames, route, web


def tick(data: str = '"x"', **settings: Any) -> dict[str, Any]:
    return {"type": "sse-event", "event": "tick", "data": data, **settings}


def stream(*chain: dict[str, Any], **settings: Any) -> dict[str, Any]:
    more = {name: settings.pop(name) for name in ("timeout", "flow") if name in settings}
    return route("/", *chain, sse={"enabled": True, **settings}, **more)


async def test_frames_come_in_order_and_the_stream_ends_with_the_flow(tmp_path: Path) -> None:
    loop = {"type": "foreach", "items": "body", "as": "n", "body": {"process": [tick("vars.n")]}}
    async with web(tmp_path, stream(loop, tick('"a\\nb\\r\\nc"'))) as site:
        seen = await frames(site.client, "/", list(range(100)))
    assert [("tick", n) for n in range(100)] == seen[:-1]
    assert ("tick", "a\nb\nc") == seen[-1]


async def test_the_result_may_come_as_the_last_event(tmp_path: Path) -> None:
    entry = stream(tick(), payload('{"done": true}'), finalEvent=True, finalEventName="end")
    async with web(tmp_path, entry) as site:
        assert [("tick", "x"), ("end", {"done": True})] == await frames(site.client, "/")


@pytest.mark.parametrize(
    ("chain", "status", "body"),
    [
        ([variable("httpStatus", "401"), payload("1")], 401, 1),
        ([BROKEN], 500, {"error": 'block "test-broken": boom'}),
        ([DROP], 204, None),
    ],
)
@pytest.mark.parametrize("close", [True, False])
async def test_a_flow_that_writes_nothing_answers_as_any_other(
    tmp_path: Path, chain: list[dict[str, Any]], status: int, body: Any, close: bool
) -> None:
    async with web(tmp_path, stream(*chain, finalEvent=True, closeOnComplete=close)) as site:
        answer = await site.get()
    assert status == answer.status_code
    assert body == (answer.json() if answer.content else None)


async def test_a_flow_that_completes_without_a_frame_answers_in_json(tmp_path: Path) -> None:
    async with web(tmp_path, stream(payload("1"), finalEvent=True)) as site:
        assert 1 == (await site.get()).json()


async def test_a_failure_after_the_first_frame_is_an_event(tmp_path: Path) -> None:
    async with web(tmp_path, stream(tick(), BROKEN)) as site:
        seen = await frames(site.client, "/")
    assert [("tick", "x"), ("error", {"error": 'block "test-broken": boom'})] == seen


async def test_the_time_of_a_flow_is_limited_until_its_first_frame(tmp_path: Path) -> None:
    begin = {"type": "if", "condition": "body == 1", "then": {"process": [tick()]}}
    entry = stream(begin, HANG, timeout="500ms", maxDuration="1s")
    async with web(tmp_path, entry, grace=0.0) as site:
        assert 504 == (await site.post(body=0)).status_code
        seen = await frames(site.client, "/", 1)
    assert [("tick", "x"), ("error", {"error": "the stream is older than 1s"})] == seen


async def test_a_flow_may_close_its_stream_and_go_on(tmp_path: Path) -> None:
    entry = stream(tick(close=True), NOTE, tick(ifClosed="ignore"), NOTE, finalEvent=True)
    async with web(tmp_path, entry) as site:
        seen = await frames(site.client, "/")
        await site.service.drain()
    assert [("tick", "x")] == seen
    assert 2 == len(Note.seen)


async def test_another_flow_writes_to_the_stream_after_the_first_has_ended(tmp_path: Path) -> None:
    send = {"type": "queue-dispatch", "subject": '"work"'}
    async with web(
        tmp_path,
        stream(send, closeOnComplete=False),
        flow(
            "work",
            tick("body"),
            tick('"bye"', close=True),
            source=listening("queue", "work"),
        ),
    ) as site:
        assert [("tick", "hi"), ("tick", "bye")] == await frames(site.client, "/", "hi")


async def test_a_client_that_leaves_does_not_end_the_flow(tmp_path: Path) -> None:
    """FB-54: the flow learns of it by its next frame, and may go on."""
    gone = Gate.opened = asyncio.Event()
    entry = stream(tick(), GATE, tick(ifClosed="ignore"), payload('"kept"'), NOTE)
    async with web(tmp_path, entry) as site:
        async with site.client.stream("POST", "/") as response:
            assert ("tick", "x") == await anext(Events(response))
        connector = site.service.streams["http"]
        while not all(held.closed for held in connector._streams.values()):  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        gone.set()
        await site.service.drain()
    assert ["kept"] == [seen.body for seen in Note.seen]


async def test_a_client_that_takes_nothing_loses_its_stream_and_no_other(tmp_path: Path) -> None:
    loop = {"type": "foreach", "items": "body.n", "body": {"process": [tick("body.big")]}}
    body = {"n": list(range(1000)), "big": "x" * 100_000}
    data = json.dumps(body).encode()
    async with web(tmp_path, stream(loop), connector={"writeTimeout": "500ms"}) as site:
        async with site.connection() as (reader, writer):
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(data))
            writer.write(data)
            await writer.drain()
            assert 3 == len(await frames(site.client, "/", body | {"n": [1, 2, 3]}))
            await site.service.drain()
        assert {} == site.service.streams["http"]._streams  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("chain", "event"),
    [
        ([payload('"text"')], ("result", "text")),
        ([RAW], ("result", "text")),
        ([payload("null")], ("result", None)),
    ],
)
async def test_what_the_last_event_carries(
    tmp_path: Path, chain: list[dict[str, Any]], event: tuple[str, Any]
) -> None:
    async with web(tmp_path, stream(tick(), *chain, finalEvent=True)) as site:
        assert event == (await frames(site.client, "/"))[-1]


async def test_a_stream_that_is_quiet_shows_that_it_lives(tmp_path: Path) -> None:
    entry = stream(tick(), HANG, heartbeat="20ms", maxDuration="1s")
    async with web(tmp_path, entry, grace=0.0) as site, site.client.stream("GET", "/") as response:
        lines = [line async for line in response.aiter_lines()]
    assert lines.count(": ") >= 3


async def test_there_are_only_so_many_streams(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Gate.opened = asyncio.Event()
    entry = stream(tick(), GATE, maxStreams=2)
    async with (
        web(tmp_path, entry, grace=0.0) as site,
        site.client.stream("GET", "/"),
        site.client.stream("GET", "/"),
    ):
        answer = await site.get()
        Gate.opened.set()
    assert (503, "1") == (answer.status_code, answer.headers["retry-after"])
    assert "too many streams" in capsys.readouterr().err


async def test_open_streams_are_ended_at_the_stop(tmp_path: Path) -> None:
    async with (
        web(tmp_path, stream(closeOnComplete=False)) as site,
        site.client.stream("GET", "/") as response,
    ):
        assert "text/event-stream; charset=utf-8" == response.headers["content-type"]
        await site.service.stop()
        assert b"" == await response.aread()


async def test_a_stream_that_is_cut_off_at_the_stop_says_so(tmp_path: Path) -> None:
    async with (
        web(tmp_path, stream(tick(), HANG)) as site,
        site.client.stream("GET", "/") as response,
    ):
        events = Events(response)
        await anext(events)
        await site.service.stop(grace=0.05)
        event, data = await anext(events)
    assert ("error", True) == (event, "stopped before the flow had ended" in data)
    assert 1 == Hang.cancelled


async def test_headers_of_a_stream_come_from_variables(tmp_path: Path) -> None:
    entry = stream(variable("X-Run", '"7"'), tick())
    entry["source"]["settings"]["responseHeaders"] = ["X-Run"]
    async with web(tmp_path, entry) as site:
        assert "7" == (await site.get()).headers["x-run"]


async def test_two_services_cannot_have_one_port(tmp_path: Path) -> None:
    async with web(tmp_path, stream()) as site:
        with pytest.raises(ConnectorError, match="cannot listen on") as caught:
            async with web(tmp_path, stream(), connector={"port": site.port}):
                pass
    assert "choose another port" in str(caught.value)
