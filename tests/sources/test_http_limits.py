"""What the source `http` refuses, and how it keeps going."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.blocks.chains import NOTE, Note, payload
from tests.sources.gate import GATE, Gate
from tests.sources.malformed import HEAD
from tests.sources.web import route, web

ECHO = payload("body")


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"{", "the body is no JSON"),
        (b"{'a': 1}", "the body is no JSON"),
        (b"NaN", "NaN is none"),
        (b"[1] 2", "the body is no JSON"),
        (b'"\xff"', "the body is no UTF-8 text"),
        (b"9" * 5000, "the body is no JSON"),
        (b"[" * 100_000, "the body is nested too deeply"),
        (b'{"a":' * 2_000 + b"1" + b"}" * 2_000, "the body is nested too deeply"),
    ],
)
async def test_a_body_that_is_no_json_is_refused_before_the_flow(
    tmp_path: Path, content: bytes, text: str
) -> None:
    async with web(tmp_path, route("/", NOTE)) as site:
        answer = await site.post(content=content)
    assert 400 == answer.status_code
    assert text in answer.json()["error"]
    assert [] == Note.seen


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b", b"--c\r\n"),
        ("multipart/form-data; boundary=b", b"--b\r\nContent-Disposition: form-data; name=a\r\n"),
    ],
)
async def test_a_form_that_breaks_off_is_refused(
    tmp_path: Path, content_type: str, content: bytes
) -> None:
    async with web(tmp_path, route("/", NOTE)) as site:
        answer = await site.post(content=content, headers={"content-type": content_type})
    assert 400 == answer.status_code
    assert "multipart" in answer.json()["error"]


@pytest.mark.parametrize("settings", [{"rawBody": True}, {"rawBodyVar": "raw"}])
async def test_bytes_that_are_no_text_are_refused_as_text(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    async with web(tmp_path, route("/", NOTE, **settings)) as site:
        answer = await site.post(content=b"\xff\xfe")
    assert (400, True) == (answer.status_code, "UTF-8" in answer.json()["error"])


async def test_a_body_over_the_limit_is_refused_with_413_announced_or_not(tmp_path: Path) -> None:
    async def pieces() -> Any:
        for _ in range(10):
            yield b"11"

    async with web(tmp_path, route("/", NOTE, maxBodyBytes=10)) as site:
        fits = await site.post(content=b"1234567890")
        announced = await site.post(content=b"12345678901")
        chunked = await site.post(content=pieces())
        unread = await site.raw(HEAD + b"content-length: 99999999999\r\n\r\n")
    assert (200, 413, 413) == (fits.status_code, announced.status_code, chunked.status_code)
    assert unread.startswith(b"HTTP/1.1 413 ")
    assert 1 == len(Note.seen)


async def test_a_query_of_too_many_fields_is_refused(tmp_path: Path) -> None:
    async with web(tmp_path, route("/", NOTE)) as site:
        answer = await site.get("/?" + "a&" * 2000)
    assert 400 == answer.status_code


async def test_nul_and_broken_text_never_reach_the_flow(tmp_path: Path) -> None:
    async with web(tmp_path, route("/{x}", payload("[body, vars.x, vars.query.q]"))) as site:
        answer = await site.post("/a%00b?q=%00%ff", content=rb'"\u0000\ud800"')
    assert ["\ufffd\ufffd", "a\ufffdb", "\ufffd\ufffd"] == answer.json()


async def test_a_flow_takes_its_workers_and_its_buffer_and_not_one_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Gate.opened = asyncio.Event()
    entry = route("/", NOTE, GATE, flow={"workers": 2, "buffer": 3})
    async with web(tmp_path, entry) as site:
        calls = {asyncio.create_task(site.get()) for _ in range(40)}
        answers = []
        while len(answers) < 35:
            done, calls = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            answers += [call.result() for call in done]
        assert (2, 3) == (len(Note.seen), site.service.waiting()["flow 'main'"])
        Gate.opened.set()
        taken = await asyncio.gather(*calls)
    assert [503] * 35 == [answer.status_code for answer in answers]
    assert [200] * 5 == [answer.status_code for answer in taken]
    assert "1" == answers[0].headers["retry-after"]
    assert {"error": "the service is busy"} == answers[0].json()
    full = [line for line in told(capsys) if "the flow is full" in line["event"]]
    assert 35 == sum(line["count"] for line in full)


async def test_a_client_that_leaves_does_not_end_its_turn(tmp_path: Path) -> None:
    """FB-54."""
    Gate.opened = asyncio.Event()
    async with web(tmp_path, route("/", NOTE, GATE, payload('"kept"'), NOTE)) as site:
        async with site.connection() as (_, writer):
            writer.write(HEAD + b"content-length: 0\r\n\r\n")
            await writer.drain()
            while not Note.seen:
                await asyncio.sleep(0)
        Gate.opened.set()
        await site.service.drain()
    assert [None, "kept"] == [seen.body for seen in Note.seen]


async def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_no_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with web(tmp_path, route("/", ECHO)) as site:
        for _ in range(50):
            async with site.connection() as (_, writer):
                writer.write(HEAD + b"content-length: 100\r\n\r\n{")
                await writer.drain()
        assert 1 == (await site.post(body=1)).json()
    assert ["listening"] == [line["event"] for line in told(capsys)]


async def test_a_body_that_trickles_in_is_given_up_with_408(tmp_path: Path) -> None:
    async with web(tmp_path, route("/", ECHO), connector={"readTimeout": "100ms"}) as site:
        answer = await site.raw(HEAD + b"content-length: 100\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: x\r\nx-a: "])
async def test_a_head_that_never_ends_is_hung_up_on(tmp_path: Path, sent: bytes) -> None:
    async with web(tmp_path, route("/", ECHO), connector={"readTimeout": "100ms"}) as site:
        async with asyncio.timeout(5), site.connection() as (reader, writer):
            writer.write(sent)
            with contextlib.suppress(ConnectionResetError):
                assert b"" == await reader.read()
        assert 1 == (await site.post(body=1)).json()


async def test_an_answer_that_nobody_reads_is_given_up(tmp_path: Path) -> None:
    entry = route("/", NOTE, rawBody=True, maxBodyBytes=64 * 1024 * 1024)
    limits = {"writeTimeout": "100ms", "idleTimeout": "1s"}
    async with (
        web(tmp_path, entry, connector=limits) as site,
        asyncio.timeout(15),
        site.connection() as (reader, writer),
    ):
        size = 32 * 1024 * 1024
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\n" + b"content-length: %d\r\n\r\n" % size)
        writer.write(b"a" * size)
        await writer.drain()
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        server = site.service.streams["http"]._server  # type: ignore[attr-defined]
        while server.connections:
            await asyncio.sleep(0.01)


async def test_requests_in_a_pipeline_are_answered_in_order(tmp_path: Path) -> None:
    one = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n"
    async with web(tmp_path, route("/", ECHO)) as site:
        answer = await site.raw(one + b"1" + one + b"2" + HEAD + b"content-length: 1\r\n\r\n3")
    bodies = [part.partition(b"\r\n\r\n")[2][:1] for part in answer.split(b"HTTP/1.1 200")[1:]]
    assert [b"1", b"2", b"3"] == bodies
