"""How many clients an `http` connector has, and how long it has patience with each."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.blocks.chains import NOTE, Note, payload
from tests.sources.gate import GATE, Gate
from tests.sources.malformed import HEAD
from tests.sources.test_http_limits import told
from tests.sources.web import Web, route, web

ASK = HEAD + b"content-length: 1\r\n\r\n1"
KEEP = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def clients(site: Web, count: int, sent: bytes) -> AsyncIterator[list[Pair]]:
    """Connections that have sent this, and nothing more."""
    async with contextlib.AsyncExitStack() as stack:
        pairs = []
        for _ in range(count):
            pair = await stack.enter_async_context(site.connection())
            pair[1].write(sent)
            pairs.append(pair)
        yield pairs


async def head_of(reader: asyncio.StreamReader) -> bytes:
    """The head of the next answer, its body left out; b"" where the connection was closed."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))
    return head


def counted(capsys: pytest.CaptureFixture[str], text: str) -> int:
    """What the log lines with this text count."""
    return sum(line["count"] for line in told(capsys) if text in line["event"])


async def test_one_more_connection_than_allowed_is_told_to_come_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Gate.opened = asyncio.Event()
    limits = {"maxConnections": 3}
    entry = route("/", NOTE, GATE, payload("body"), flow={"workers": 9})
    async with web(tmp_path, entry, connector=limits) as site, clients(site, 3, ASK) as pairs:
        while len(Note.seen) < 3:
            await asyncio.sleep(0)
        refused = await site.raw(ASK)
        Gate.opened.set()
        for reader, _ in pairs:
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        assert (await site.raw(ASK)).startswith(b"HTTP/1.1 200 ")
    head, _, body = refused.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in head
    assert {"error": "there are too many connections"} == json.loads(body)
    assert 1 == counted(capsys, "connector 'http': connections were turned away")


async def test_the_connection_that_is_idle_for_longest_makes_room(tmp_path: Path) -> None:
    limits = {"maxConnections": 3}
    async with (
        web(tmp_path, route("/", NOTE), connector=limits) as site,
        clients(site, 3, KEEP) as pairs,
    ):
        for reader, _ in pairs:
            assert (await head_of(reader)).startswith(b"HTTP/1.1 200 ")
        pairs[0][1].write(KEEP)
        await head_of(pairs[0][0])
        assert (await site.raw(ASK)).startswith(b"HTTP/1.1 200 ")
        alive = []
        for reader, writer in pairs:
            writer.write(KEEP)
            alive.append(bool(await head_of(reader)))
    assert [True, False, True] == alive


async def test_a_flood_of_connections_that_send_nothing_keeps_nobody_out(tmp_path: Path) -> None:
    limits = {"maxConnections": 20}
    async with (
        web(tmp_path, route("/", NOTE), connector=limits) as site,
        clients(site, 300, b""),
    ):
        server = site.service.streams["http"]._server  # type: ignore[attr-defined]
        for _ in range(10):
            assert (await site.raw(ASK)).startswith(b"HTTP/1.1 200 ")
            assert server.connections <= 21


async def test_half_a_head_on_each_connection_is_cut_off_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {"maxConnections": 20, "readTimeout": "200ms"}
    async with (
        web(tmp_path, route("/", NOTE), connector=limits) as site,
        clients(site, 200, b"GET / HT") as pairs,
    ):
        server = site.service.streams["http"]._server  # type: ignore[attr-defined]
        async with asyncio.timeout(10):
            for reader, _ in pairs:
                with contextlib.suppress(ConnectionError):
                    await reader.read()
        assert 0 == server.connections
        assert (await site.raw(ASK)).startswith(b"HTTP/1.1 200 ")
    lines = told(capsys)
    kinds = ("the head did not end", "turned away")
    sums = [
        sum(line["count"] for line in lines if kind in line["event"] and "count" in line)
        for kind in kinds
    ]
    assert 20 <= sums[0]
    assert 200 == sum(sums)
    assert len(lines) < 10


async def test_a_connection_that_never_sent_anything_is_closed_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with web(tmp_path, route("/", NOTE), connector={"readTimeout": "100ms"}) as site:
        assert b"" == await site.raw()
    assert ["listening"] == [line["event"] for line in told(capsys)]


async def test_bodies_at_a_byte_a_time_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with web(tmp_path, route("/", NOTE), connector={"readTimeout": "100ms"}) as site:
        answers = await asyncio.gather(
            *(site.raw(HEAD + b"content-length: 100\r\n\r\n", b"1") for _ in range(20))
        )
    assert {b"HTTP/1.1 408 "} == {answer[:13] for answer in answers}
    assert 20 == counted(capsys, "their body did not come in time")


async def test_a_reader_of_events_that_takes_nothing_is_cut_off_with_a_log_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What waits for it is a connection's buffer and one frame, however much the flow has."""
    event = {"type": "sse-event", "data": "body", "ifClosed": "ignore"}
    large = json.dumps("x" * 200_000).encode()
    entry = route("/", *([event] * 40), NOTE, sse={"enabled": True})
    limits = {"writeTimeout": "200ms"}
    async with (
        web(tmp_path, entry, connector=limits) as site,
        site.connection() as (reader, writer),
    ):
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(HEAD + b"content-length: %d\r\n\r\n" % len(large) + large)
        async with asyncio.timeout(10):
            while not Note.seen:
                await asyncio.sleep(0.01)
        server: Any = site.service.streams["http"]._server  # type: ignore[attr-defined]
        while server.connections:
            await asyncio.sleep(0.01)
    assert 1 == counted(capsys, "the client took nothing")
