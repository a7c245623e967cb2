"""The HTTP side of the fake APIs: uvicorn on a loopback port, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from flowrt.testing.replies import Gate


@dataclass(slots=True)
class Call:
    """One request that came in. `at` is `time.monotonic()`; header names are in lower case; `port`
    is the client's, the same for all calls on one connection.

    `body` is the decoded JSON, None where there is none. `status` is what was answered, None while
    nothing is.
    """

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    at: float
    port: int
    query: str = ""
    body: Any = None
    status: int | None = None
    _abandoned: Future[None] = field(default_factory=Future)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the request."""
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages

    async def abandoned(self) -> None:
        """Wait until the client has hung up before it had the whole answer."""
        await asyncio.shield(asyncio.wrap_future(self._abandoned))

    @property
    def hung_up(self) -> bool:
        """Whether the client has hung up."""
        return self._abandoned.done()

    def hang_up(self) -> None:
        """Note that the client hung up."""
        if not self.hung_up:
            self._abandoned.set_result(None)


@dataclass(slots=True)
class Answer:
    """What to send: `parts` are a whole body, or the events of a stream where `stream` is set.

    After `hold_after` parts `hold` is waited for; after `disconnect` parts the connection breaks.
    """

    status: int
    parts: list[bytes]
    headers: dict[str, str]
    stream: bool = False
    hold: Gate | None = None
    hold_after: int = 0
    disconnect: int | None = None

    def head(self) -> dict[str, Any]:
        """The ASGI message that begins the response."""
        kind = "text/event-stream" if self.stream else "application/json"
        headers = {"content-type": kind, **self.headers}
        if not self.stream:
            headers["content-length"] = str(sum(map(len, self.parts)))
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        return {"type": "http.response.start", "status": self.status, "headers": pairs}

    async def bodies(self) -> AsyncIterator[bytes]:
        """The parts, with whatever is to happen between them."""
        for index in range(len(self.parts) + 1):
            if self.hold is not None and self.stream and index == self.hold_after > 0:
                await self.hold.pass_through()
            if index == self.disconnect:
                raise ConnectionAbortedError("the script breaks the connection here")
            if index < len(self.parts):
                yield self.parts[index]


class LoopbackServer:
    """Serves `handle` on `url` between `start` and `stop`."""

    def __init__(self, handle: Callable[[Call], Awaitable[Answer]]) -> None:
        self._handle = handle
        self._fault: Exception | None = None
        # Named TCP: of a socket without a protocol asyncio does not turn Nagle's algorithm off, and
        # each answer waits 40 ms for the client's acknowledgement.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        # From here on clients can connect; what comes before the thread is up waits in the queue.
        self._socket.listen(512)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            # Broken connections are part of the script; a fault of the fake is raised by `stop`.
            log_level="critical",
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._serve, name="fake-api", daemon=True)

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Break the connections that are left and end the thread.

        Raises what went wrong in `handle`, if anything did.
        """
        if self._thread.is_alive():
            self._server.stop()
            self._thread.join()
        self._socket.close()
        if self._fault is not None:
            raise self._fault

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        raw = b""
        more = True
        while more:
            event = await receive()
            if event["type"] == "http.disconnect":
                return
            raw += event.get("body", b"")
            more = event.get("more_body", False)
        headers = {name.decode("latin-1"): value.decode("latin-1")
                   for name, value in scope["headers"]}  # fmt: skip
        call = Call(
            scope["method"],
            scope["path"],
            headers,
            raw,
            time.monotonic(),
            scope["client"][1],
            scope["query_string"].decode("latin-1"),
        )
        answering = asyncio.ensure_future(self._respond(call, send))
        hanging_up = asyncio.ensure_future(_hang_up(receive))
        try:
            await asyncio.wait((answering, hanging_up), return_when=asyncio.FIRST_COMPLETED)
        finally:
            hanging_up.cancel()
            if not answering.done():
                answering.cancel()
                call.hang_up()
        if call.hung_up:
            return
        try:
            await answering
        except ConnectionAbortedError:
            raise
        except Exception as fault:
            self._fault = fault
            raise

    async def _respond(self, call: Call, send: Any) -> None:
        answer = await self._handle(call)
        if answer.hold is not None and not (answer.stream and answer.hold_after):
            await answer.hold.pass_through()
        call.status = answer.status
        await send(answer.head())
        async for body in answer.bodies():
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _hang_up(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Server(uvicorn.Server):
    """Ends the moment it is told to, where uvicorn's own looks ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._ended = asyncio.Event()

    def stop(self) -> None:
        """End from another thread."""
        self._loop.result().call_soon_threadsafe(self._ended.set)

    async def main_loop(self) -> None:
        self._loop.set_result(asyncio.get_running_loop())
        await self._ended.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Break everything off; the one who asks has nothing to wait for."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        for task in list(self.server_state.tasks):
            task.cancel()
