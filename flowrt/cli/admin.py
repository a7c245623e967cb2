"""The admin port of `flowrt run`: is it alive, is it ready, what has it done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowrt.connectors.http_answer import Answer, refusal
from flowrt.errors import CallError, ConnectorError

if TYPE_CHECKING:
    from flowrt.connectors.http_server import HttpServer
    from flowrt.observe.metrics import Metrics

DEFAULT = "127.0.0.1:39999"
OFF = "off"
CONNECTIONS = 64
"""Clients of the admin port at a time."""

_TEXT = (b"content-type", b"text/plain; charset=utf-8")


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT`` or ``[IPv6]:PORT``. Raises `CallError`."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise CallError(f"--admin: expected HOST:PORT or {OFF}, found {text!r}")
    return host, int(port)


class Admin:
    """Answers ``/healthz``, ``/readyz`` and ``/metrics``.

    `ready` says why the service takes no work, or "" where it does. `metrics` is None where
    prometheus-client is not installed.
    """

    def __init__(self, ready: Callable[[], str], metrics: Metrics | None) -> None:
        self._ready = ready
        self._metrics = metrics
        self._server: HttpServer | None = None

    async def start(self, address: str) -> None:
        """Listen on an address, unless it is ``off``. Raises `ConnectorError`, `CallError`."""
        if address == OFF:
            return
        host, port = parse_address(address)
        try:
            from flowrt.connectors.http_protocol import ServerLimits
            from flowrt.connectors.http_server import HttpServer
        except ImportError as error:
            raise ConnectorError(
                f"the admin port needs {error.name}, which is not installed; "
                f"pip install 'flowrt[serve]', or --admin {OFF}"
            ) from error
        self._server = HttpServer(
            self._app, host, port, "the admin port", ServerLimits(connections=CONNECTIONS)
        )
        await self._server.start()

    async def stop(self) -> None:
        """Close the port."""
        if self._server is not None:
            await self._server.stop()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await self._answer(scope["method"], scope["path"]).send(send)

    def _answer(self, method: str, path: str) -> Answer:
        if method not in ("GET", "HEAD"):
            return refusal(405, "GET is what there is", (b"allow", b"GET, HEAD"))
        if path == "/healthz":
            return Answer(200, [_TEXT], b"ok\n")
        if path == "/readyz":
            reason = self._ready()
            return Answer(503 if reason else 200, [_TEXT], (reason or "ready").encode() + b"\n")
        if path == "/metrics" and self._metrics is not None:
            from flowrt.observe.metrics import CONTENT_TYPE

            kind = (b"content-type", CONTENT_TYPE.encode())
            return Answer(200, [kind], self._metrics.text())
        if path == "/metrics":
            return refusal(404, "prometheus-client is not installed; pip install 'flowrt[metrics]'")
        return refusal(404, "there are /healthz, /readyz and /metrics")
