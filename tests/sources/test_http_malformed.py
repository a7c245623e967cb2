"""Requests that are no HTTP, or try to be two: answered or hung up on, and never with an inside."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.blocks.chains import NOTE, Note, payload
from tests.sources.malformed import HUGE, NO_HTTP, ODD, TWO_ENDS, malformed
from tests.sources.test_http_limits import told
from tests.sources.web import Web, route, web

KNOWN = (200, 400, 404, 405, 408, 413)
SOON = {"readTimeout": "1s", "idleTimeout": "1s"}


async def answers(site: Web, sent: bytes, *, ends: bool = False) -> bytes:
    """Everything that comes back; b"" where the connection is reset. `ends`: send no more."""
    async with site.connection() as (reader, writer):
        try:
            writer.write(sent)
            await writer.drain()
            if ends:
                writer.write_eof()
            return await reader.read()
        except OSError:
            return b""


@pytest.mark.parametrize("shape", TWO_ENDS)
async def test_a_request_that_ends_in_two_places_is_refused_with_all_that_follows(
    tmp_path: Path, shape: str
) -> None:
    entries = route("/{any}", NOTE), route("/", NOTE, name="root")
    async with web(tmp_path, *entries, connector=SOON) as site:
        answer = await answers(site, TWO_ENDS[shape])
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"says twice how long it is" in answer
    assert 1 == answer.count(b"HTTP/1.1 ")
    assert [] == Note.seen


@pytest.mark.parametrize("shape", NO_HTTP)
async def test_what_is_no_http_is_answered_with_400_and_closed(tmp_path: Path, shape: str) -> None:
    async with web(tmp_path, route("/", NOTE)) as site:
        answer = await answers(site, NO_HTTP[shape])
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert 1 == answer.count(b"HTTP/1.1 ")
    assert [] == Note.seen


@pytest.mark.parametrize("shape", HUGE)
async def test_a_head_of_any_size_is_given_up_early(tmp_path: Path, shape: str) -> None:
    async with web(tmp_path, route("/", NOTE)) as site:
        answer = await answers(site, HUGE[shape])
        assert answer[:13] in (b"", b"HTTP/1.1 400 ")
    assert [] == Note.seen


@pytest.mark.parametrize("shape", ODD)
async def test_what_is_odd_is_answered_and_quiet(
    tmp_path: Path, shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with web(tmp_path, route("/", NOTE), connector=SOON) as site:
        for answer in await asyncio.gather(*(answers(site, ODD[shape]) for _ in range(3))):
            assert answer[:13] in {b"HTTP/1.1 %d " % status for status in KNOWN}
    # One line a second counts them, whatever they are.
    assert len(told(capsys)) <= 4


async def test_chunks_that_break_after_the_answer_end_the_connection_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One traceback in the log for each, it was: anybody could fill the disk."""
    head = b"POST /nowhere HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n1\r\n"
    async with web(tmp_path, route("/", NOTE)) as site, site.connection() as (reader, writer):
        writer.write(head)
        assert (await reader.readuntil(b"nothing at this path")).startswith(b"HTTP/1.1 404 ")
        writer.write(b"no chunk\r\n")
        assert b"HTTP/1.1" not in await reader.read()
    assert [] == [record for record in caplog.records if record.name == "asyncio"]


async def test_a_thousand_malformed_requests_are_answered_or_hung_up_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with web(tmp_path, route("/", payload("body")), connector=SOON) as site:
        for start in range(0, 1000, 100):
            seeds = range(start, start + 100)
            for answer in await asyncio.gather(
                *(answers(site, malformed(n), ends=True) for n in seeds)
            ):
                assert answer[:13] in (b"", *(b"HTTP/1.1 %d " % status for status in KNOWN))
                assert b"Traceback" not in answer
        assert {"a": 1} == (await site.post(body={"a": 1})).json()
    lines = told(capsys)
    assert len(lines) < 40
    assert all(line["level"] in ("info", "warning") for line in lines)
