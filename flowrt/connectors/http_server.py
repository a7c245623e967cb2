"""A uvicorn that runs inside an event loop somebody else owns. Needs the extra `serve`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import uvicorn

from flowrt.connectors.http_answer import CLOSE, refusal
from flowrt.connectors.http_protocol import Clients, ServerLimits, protocol
from flowrt.errors import ConnectorError
from flowrt.observe.flood import Flood
from flowrt.observe.log import get_logger

BACKLOG = 2048
"""Connections that the machine may hold for us between two looks."""

AT_ONCE = 64
"""Connections that are taken in one go: a flood of them must not keep the loop from other work."""

OTHER_FILES = 128
"""Open files that are left for everything but connections: stores, models, the admin port."""

LINGER = 5
"""Seconds that answers which are being written have when the server stops."""

if sys.platform != "win32":
    import resource

_log = get_logger("flowrt.http")


class HttpServer:
    """Serves an ASGI app between `start` and `stop`; `what` names it in errors and logs.

    Which app may be changed while it serves: requests that came before stay with theirs.
    """

    def __init__(
        self, app: Any, host: str, port: int, what: str, limits: ServerLimits | None = None
    ) -> None:
        self.app = app
        self._what = what
        self._host = host
        self._port = port
        limits = limits or ServerLimits()
        self._clients = Clients(_affordable(limits, what), what)
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            # The one whose size of a head is bounded.
            http=protocol(self._clients),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=_headers(limits),
            timeout_graceful_shutdown=LINGER,
            backlog=AT_ONCE,
        )
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None
        self._socket: socket.socket | None = None

    def bind(self) -> None:
        """Take the port; clients wait until `start`. Raises `ConnectorError`."""
        self._socket = self._bound()

    async def start(self) -> None:
        """Listen. Raises `ConnectorError` where the address cannot be had."""
        _forward_logs()
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        self._serving = asyncio.create_task(
            self._server.serve(sockets=[self._socket]), name=f"{self._what}, server"
        )
        ready = asyncio.create_task(self._server.ready.wait())
        await asyncio.wait((self._serving, ready), return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._serving.done():
            self._serving.result()
        # asyncio takes as many connections at once as it lets the machine hold, and sets both.
        self._socket.listen(BACKLOG)
        _log.info("listening", server=self._what, url=self.url)

    def change(self, app: Any, limits: ServerLimits) -> None:
        """Serve another app from the next request on; the limits are for the next connections."""
        self.app = app
        self._clients.limits = _affordable(limits, self._what)
        self._server.config.encoded_headers = [
            (name.encode(), value.encode()) for name, value in _headers(limits)
        ]

    async def stop(self) -> None:
        """Accept nothing more; answers that are being written have `LINGER` seconds."""
        if self._serving is not None:
            self._server.should_exit = True
            await asyncio.wait((self._serving,))
            for connection in list(self._server.server_state.connections):
                if connection.transport is not None:
                    connection.transport.abort()
            self._serving = None
            self._clients.flush()
            _forward.flush()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        if _ends_in_two_places(scope):
            _forward.note()
            await refusal(400, "the request says twice how long it is", CLOSE).send(send)
            return
        await self.app(scope, receive, send)

    @property
    def url(self) -> str:
        """Where it listens, with the port that it was given where 0 was asked for."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    @property
    def port(self) -> int:
        """The port."""
        return self._port

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._server.server_state.connections)

    def _bound(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # Named TCP: of a socket without a protocol asyncio does not turn Nagle's algorithm off, and
        # each answer waits 40 ms for the client's acknowledgement.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            # Not on Windows, where it lets two processes have one port.
            if hasattr(socket, "SO_REUSEPORT"):
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((self._host, self._port))
            made.listen(BACKLOG)
        except OSError as error:
            made.close()
            raise ConnectorError(
                f"{self._what} cannot listen on {self._host}:{self._port}: "
                f"{error.strerror or error}; end what listens there, or choose another port"
            ) from error
        made.setblocking(False)
        self._port = made.getsockname()[1]
        return made


def _ends_in_two_places(scope: Any) -> bool:
    """Whether a proxy in front may see the end of a request elsewhere than we do.

    What it takes for the body could else be a second request, past all that it checks.
    """
    names = [name for name, _ in scope["headers"]]
    if b"transfer-encoding" not in names:
        return False
    return b"content-length" in names or scope["http_version"] == "1.0"


def _affordable(limits: ServerLimits, what: str) -> ServerLimits:
    """The limits, with no more connections than the process may have files.

    Out of files it could not open a store either, nor answer on the admin port.
    """
    if sys.platform == "win32":
        return limits
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(1, files - OTHER_FILES)
    if files == resource.RLIM_INFINITY or limits.connections <= most:
        return limits
    text = f"{what}: fewer connections than maxConnections; raise the limit of open files"
    _log.warning(text, max_connections=limits.connections, possible=most, files=files)
    return replace(limits, connections=most)


def _headers(limits: ServerLimits) -> list[tuple[str, str]]:
    return [] if limits.keep_alive else [("connection", "close")]


class _Server(uvicorn.Server):
    """Leaves the signals of the process to whoever owns it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()


class _Forward(logging.Handler):
    """Writes what uvicorn logs to our log; requests that are no HTTP are counted."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._no_http = Flood(_log, "requests were no HTTP and answered with 400")
        self._upgrades = Flood(_log, "requests wanted another protocol and were answered in HTTP")

    def note(self) -> None:
        """Count a request that is none."""
        self._no_http.note()

    def flush(self) -> None:
        """Tell what is counted and not told yet."""
        self._no_http.flush()
        self._upgrades.flush()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage().strip()
        if text == "Invalid HTTP request received.":
            self.note()
        elif text == "Unsupported upgrade request.":
            self._upgrades.note()
        elif text.startswith("No supported WebSocket library"):
            pass  # said after each of those, for somebody who wants to install one
        elif record.exc_info and record.exc_info[1] is not None:
            raised = record.exc_info[1]
            # An answer that was cut off at the stop; its client sees the connection end.
            if not isinstance(raised, asyncio.CancelledError):
                told = "".join(traceback.format_exception(raised))
                _log.error("a request failed inside of the server", error=told)
        else:
            _log.warning(text)


_forward = _Forward()


def _forward_logs() -> None:
    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(_forward)  # once: a handler that is there already is not added again
    logger.propagate = False
