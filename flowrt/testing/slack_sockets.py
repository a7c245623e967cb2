"""Slack's side of Socket Mode: real WebSockets on a loopback port. Needs the extra `slack`."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from flowrt.ids import new_id

if TYPE_CHECKING:
    from aiohttp import web

MOST_OPEN = 10
"""Connections of one app at a time."""


class FakeEnvelope:
    """Something sent over a connection. `acks` counts how often it was acknowledged."""

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.acks = 0
        self._settled: Future[bool] = Future()

    async def settled(self) -> bool:
        """Whether it was acknowledged; waits for that, or for the end of its connection."""
        return await asyncio.wrap_future(self._settled)

    def acknowledge(self) -> None:
        """Count an acknowledgement."""
        self.acks += 1
        self.settle(True)

    def settle(self, acknowledged: bool) -> None:
        """Note how it went, unless that is known."""
        if not self._settled.done():
            self._settled.set_result(acknowledged)


class FakeSocket:
    """A connection that the app has opened. `sent` are the envelopes that went over it."""

    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.Transport) -> None:
        self.sent: list[FakeEnvelope] = []
        self.is_open = True
        self._socket = socket
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._outbox: asyncio.Queue[str | None] = asyncio.Queue()
        self._ended: Future[None] = Future()
        self._pongs: list[Future[None]] = []

    def send(
        self,
        payload: dict[str, Any],
        *,
        type_: str = "events_api",
        retry: int = 0,
        id_: str | None = None,
    ) -> FakeEnvelope:
        """Send an envelope; `retry` says how often it was sent before. Returns at once."""
        envelope = FakeEnvelope(id_ or new_id())
        said = {
            "envelope_id": envelope.id,
            "type": type_,
            "payload": payload,
            "accepts_response_payload": type_ != "events_api",
            "retry_attempt": retry,
            "retry_reason": "timeout" if retry else "",
        }
        self._loop.call_soon_threadsafe(self._post, envelope, json.dumps(said))
        return envelope

    def say(self, text: str) -> None:
        """Send a text as it is."""
        self._loop.call_soon_threadsafe(self._outbox.put_nowait, text)

    def disconnect(self, reason: str = "refresh_requested") -> None:
        """Tell the app to open another connection; this one stays open until `close`."""
        said = {"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}}
        self.say(json.dumps(said))

    def close(self) -> None:
        """Close in order, after what was sent."""
        self._loop.call_soon_threadsafe(self._outbox.put_nowait, None)

    def drop(self) -> None:
        """Break the connection off."""
        self._loop.call_soon_threadsafe(self._transport.abort)

    def freeze(self) -> None:
        """Hear and say nothing more, and stay open: what a lost network looks like."""
        self._loop.call_soon_threadsafe(self._transport.pause_reading)

    async def ping(self) -> None:
        """Ping the app and wait for its pong."""
        pong: Future[None] = Future()
        self._pongs.append(pong)
        asyncio.run_coroutine_threadsafe(self._socket.ping(), self._loop)
        await asyncio.wrap_future(pong)

    async def ended(self) -> None:
        """Wait until the connection has ended."""
        await asyncio.shield(asyncio.wrap_future(self._ended))

    async def serve(self) -> None:
        """Carry both directions until one ends."""
        writing = asyncio.create_task(self._write())
        try:
            await self._read()
        finally:
            writing.cancel()
            self.is_open = False
            for envelope in self.sent:
                envelope.settle(False)
            self._ended.set_result(None)

    def _post(self, envelope: FakeEnvelope, text: str) -> None:
        self.sent.append(envelope)
        if self.is_open:
            self._outbox.put_nowait(text)
        else:
            envelope.settle(False)

    async def _write(self) -> None:
        while (text := await self._outbox.get()) is not None:
            await self._socket.send_str(text)
        await self._socket.close()

    async def _read(self) -> None:
        from aiohttp import WSMsgType

        async for frame in self._socket:
            if frame.type is WSMsgType.PING:
                await self._socket.pong(frame.data)
            elif frame.type is WSMsgType.PONG and self._pongs:
                self._pongs.pop(0).set_result(None)
            elif frame.type is WSMsgType.TEXT:
                id_ = json.loads(frame.data)["envelope_id"]
                next(envelope for envelope in self.sent if envelope.id == id_).acknowledge()


class FakeSockets:
    """The connections of an app; `all` are those there have been, in order."""

    def __init__(self) -> None:
        self.all: list[FakeSocket] = []
        self._lock = threading.Lock()
        self._awaited: list[tuple[int, Future[FakeSocket]]] = []
        self._tickets: set[str] = set()
        self._port = 0
        self._turn = 0
        self._serving: asyncio.Task[None] | None = None

    @property
    def open(self) -> list[FakeSocket]:
        """Those that are open."""
        return [socket for socket in self.all if socket.is_open]

    async def opened(self, count: int = 1) -> FakeSocket:
        """Wait until there have been so many connections; the last of them."""
        with self._lock:
            if len(self.all) >= count:
                return self.all[count - 1]
            awaited: Future[FakeSocket] = Future()
            self._awaited.append((count, awaited))
        return await asyncio.wrap_future(awaited)

    async def deliver(self, payload: dict[str, Any]) -> FakeEnvelope:
        """Send an event as Slack does: over one open connection or another, in turn, and over the
        next where one ends before the event is acknowledged."""
        id_ = new_id()
        retry = 0
        while True:
            if not (candidates := self.open):
                candidates = [await self.opened(len(self.all) + 1)]
            self._turn += 1
            socket = candidates[self._turn % len(candidates)]
            envelope = socket.send(payload, retry=retry, id_=id_)
            if await envelope.settled():
                return envelope
            retry += 1

    async def url(self) -> str:
        """Where the app is to connect, once. Listens from the first call to the end of the loop."""
        if self._serving is None:
            from aiohttp import web

            server = web.Server(self._serve)
            listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
            self._port = listener.sockets[0].getsockname()[1]
            self._serving = asyncio.create_task(_until_cancelled(server, listener))
        ticket = new_id()
        self._tickets.add(ticket)
        return f"ws://127.0.0.1:{self._port}/link/?ticket={ticket}&app_id=A1"

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        from aiohttp import web

        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=400)
        self._tickets.remove(ticket)
        socket = web.WebSocketResponse(autoping=False, timeout=1.0)
        await socket.prepare(request)
        count = len(self.open) + 1
        if count > MOST_OPEN:
            await socket.send_json({"type": "disconnect", "reason": "too_many_websockets"})
            await socket.close()
            return socket
        hello = {"type": "hello", "num_connections": count, "connection_info": {"app_id": "A1"}}
        await socket.send_json(hello)
        assert isinstance(request.transport, asyncio.Transport)
        opened = FakeSocket(socket, request.transport)
        self._add(opened)
        await opened.serve()
        return socket

    def _add(self, socket: FakeSocket) -> None:
        with self._lock:
            self.all.append(socket)
            for awaited in [each for each in self._awaited if each[0] <= len(self.all)]:
                self._awaited.remove(awaited)
                if not awaited[1].cancelled():
                    awaited[1].set_result(socket)


async def _until_cancelled(server: web.Server, listener: asyncio.Server) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        listener.close()
        await server.shutdown(0)
