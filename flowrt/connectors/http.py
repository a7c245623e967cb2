"""`http`: the server that the sources of the same type listen on."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Self

from pydantic import Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from flowrt.connectors.http_answer import CLOSE, SOON, refusal
from flowrt.connectors.http_stream import EventStream
from flowrt.engine.block import Settings, environ_of
from flowrt.engine.connector import AnyConnector, Connector
from flowrt.engine.fields import Duration
from flowrt.engine.streams import StreamClosed
from flowrt.errors import ConnectorError
from flowrt.observe.flood import Flood
from flowrt.observe.log import get_logger

if TYPE_CHECKING:
    from flowrt.connectors.http_protocol import ServerLimits
    from flowrt.connectors.http_server import HttpServer

_log = get_logger("flowrt.http")

Port = Annotated[int, Field(ge=0, le=65535)]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
"""The methods that a source may name."""


class CorsSettings(Settings):
    """What browsers let pages of other origins do; nothing without `allowedOrigins`."""

    allowed_origins: list[str] = Field(
        default=[], description="Origins such as `https://app.example.com`; `*` for all."
    )
    allowed_methods: list[str] = Field(default=["*"], description="Methods; `*` for all.")
    allowed_headers: list[str] = Field(
        default=[], description="Headers beyond the safe ones; `*` for all."
    )
    exposed_headers: list[str] = Field(default=[], description="Headers that scripts may read.")
    allow_credentials: bool = Field(default=False, description="Let cookies be sent.")
    max_age: Duration = Field(default=600.0, description="How long a browser may remember this.")

    @model_validator(mode="after")
    def _safe(self) -> Self:
        if self.allow_credentials and "*" in self.allowed_origins:
            raise PydanticCustomError(
                "cors",
                "allowCredentials with the origin * would let every page act for its reader; "
                "name the origins",
            )
        return self


class HttpSettings(Settings):
    """Settings of the connector `http`."""

    host: str | None = Field(
        default=None, min_length=1, description="The address; else `HTTP_HOST`, else 0.0.0.0."
    )
    port: Port | None = Field(
        default=None, description="The port, 0 for a free one; else `HTTP_PORT`, else 8080."
    )
    base_path: str = Field(
        default="", pattern=r"^(/[^{}\s]*[^/{}\s])?$", description="What all paths begin with."
    )
    keep_alive: bool = Field(default=True, description="Let a client send several requests.")
    request_timeout: Duration = Field(
        default=30.0, description="How long a flow may take; 0 for no limit."
    )
    read_timeout: Duration = Field(
        default=30.0, description="How long the head of a request, and its body, may take to come."
    )
    write_timeout: Duration = Field(
        default=30.0, description="How long a client may take nothing of what is written."
    )
    idle_timeout: Duration = Field(
        default=60.0, description="How long a connection without a request stays open."
    )
    max_connections: int = Field(
        default=2000,
        ge=1,
        description="Connections at a time; the next one takes the place of an idle one, "
        "or is answered with 503.",
    )
    cors: CorsSettings = Field(
        default_factory=CorsSettings, description="What browsers let pages of other origins do."
    )

    @model_validator(mode="after")
    def _from_environment(self, info: ValidationInfo) -> Self:
        environ = environ_of(info)
        if self.host is None:
            object.__setattr__(self, "host", environ.get("HTTP_HOST") or "0.0.0.0")  # noqa: S104
        if self.port is None:
            named = environ.get("HTTP_PORT") or "8080"
            if not named.isdecimal() or not int(named) <= 65535:
                raise PydanticCustomError(
                    "port", "HTTP_PORT is {named}, and no port", {"named": repr(named)}
                )
            object.__setattr__(self, "port", int(named))
        return self


class Endpoint(Protocol):
    """A path, the methods it takes (none: all), and what handles them."""

    path: str
    methods: tuple[str, ...]

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, as an ASGI app does."""
        ...


class HttpConnector(Connector[HttpSettings]):
    """An HTTP server for sources of the type `http`; it also holds the streams of `sse-event`.

    It listens from the start of the first source to the stop of the service, so `invoke` opens no
    port. A source without a declared connector gets one with these defaults. Needs
    `pip install 'flowrt[serve]'`.

    ```yaml
    connectors:
      - name: api
        type: http
        settings:
          port: 8080
          cors: {allowedOrigins: ["https://app.example.com"]}
    ```
    """

    Settings = HttpSettings

    def __init__(self, name: str, settings: HttpSettings) -> None:
        super().__init__(name, settings)
        self._endpoints: list[Endpoint] = []
        self._streams: dict[str, EventStream] = {}
        self._app: Any = None
        self._server: HttpServer | None = None
        self._before: list[HttpConnector] = []
        # What serves the port once another connector has it.
        self._successor: HttpServer | None = None
        self.late = Flood(_log, "requests were answered with 503: the service is not serving them")
        """Counts requests to endpoints that have stopped."""
        self.slow = Flood(_log, "requests were answered with 408: their body did not come in time")
        """Counts requests whose body trickles in."""

    def mount(self, endpoint: Endpoint) -> str | None:
        """Add an endpoint, at load; or say what another one has already, if there is such."""
        for other in self._endpoints:
            if _shape(other.path) != _shape(endpoint.path):
                continue
            both = sorted({*other.methods} & {*endpoint.methods})
            if both or not (other.methods and endpoint.methods):
                return f"{both[0] if both else 'every method'} at {other.path}"
            if other.path != endpoint.path:
                return f"the same path with other names, {other.path}"
        self._endpoints.append(endpoint)
        return None

    def inherit(self, before: Sequence[AnyConnector]) -> None:
        self._before = [each for each in before if isinstance(each, HttpConnector)]

    def serve(self) -> None:
        """Take the port, unless it has it already; it is served once the service has started.

        Raises `ConnectorError`.
        """
        if self._server is not None:
            return
        try:
            from flowrt.connectors.http_app import make_app
            from flowrt.connectors.http_server import HttpServer
        except ImportError as error:
            raise ConnectorError(
                f"connector {self.name!r}: http needs {error.name}, which is not installed; "
                "pip install 'flowrt[serve]'"
            ) from error
        settings = self.settings
        assert settings.host is not None
        assert settings.port is not None
        self._successor = None
        self._app = make_app(self._endpoints, settings.cors)
        server = self._inherited()
        if server is None:
            what = f"connector {self.name!r}"
            server = HttpServer(self._app, settings.host, settings.port, what, self._limits())
            server.bind()
        self._server = server

    async def open(self) -> None:
        self._before = []
        if self._server is None:
            return
        if self._server.app is self._app:
            await self._server.start()
        else:
            self._server.change(self._app, self._limits())

    async def answer_late(self, scope: Any, data: bytes | None, receive: Any, send: Any) -> None:
        """Answer a request to an endpoint that is stopped; `data` is its body, None where unread.

        The connector that has taken over the port does it. Where none has, the answer is 503.
        """
        server = self._server or self._successor
        if server is None or server.app is self._app:
            self.late.note(path=scope["path"])
            await refusal(503, "the service is shutting down", SOON, CLOSE).send(send)
            return
        # Without what our own routes have made of it.
        fresh = {name: scope[name] for name in scope if name not in ("router", "path_params")}
        await server.app(fresh, receive if data is None else _replay(data, receive), send)

    def _limits(self) -> ServerLimits:
        from flowrt.connectors.http_protocol import ServerLimits

        settings = self.settings
        return ServerLimits(
            head=settings.read_timeout,
            idle=settings.idle_timeout,
            write=settings.write_timeout,
            keep_alive=settings.keep_alive,
            connections=settings.max_connections,
        )

    def _inherited(self) -> HttpServer | None:
        """What listens already where this connector is to. Raises `ConnectorError`."""
        here = self.settings
        for other in self._before:
            there = other.settings
            if other._server is None or there.port != here.port:
                continue
            # Port 0 is another one for each connector.
            if there.host == here.host and (here.port or other.name == self.name):
                return other._server
            if here.port:
                raise ConnectorError(
                    f"connector {self.name!r} cannot change from {there.host} to {here.host} while "
                    f"port {here.port} is in use; restart, or choose another port"
                )
        return None

    @property
    def url(self) -> str:
        """Where it listens; empty while it does not."""
        return self._server.url if self._server is not None else ""

    async def stop(self) -> None:
        self._before = []
        for stream in list(self._streams.values()):
            await end(stream)
        if self._server is not None:
            server, self._server = self._server, None
            if server.app is self._app:
                await server.stop()
            else:
                self._successor = server
        self.late.flush()
        self.slow.flush()

    def hold(self, stream: EventStream) -> str:
        """Let blocks write to a stream from now on; its address."""
        self._streams[stream.id] = stream
        return f"{self.name}:{stream.id}"

    def release(self, stream: EventStream) -> None:
        """Forget a stream."""
        self._streams.pop(stream.id, None)

    async def send_event(self, stream: str, event: str, data: str) -> None:
        """Write one frame. Raises `StreamClosed`."""
        await self._held(stream).write(event, data)

    async def close_stream(self, stream: str) -> None:
        """End the stream after what was written. Raises `StreamClosed`."""
        held = self._held(stream)
        if held.closed:
            raise StreamClosed(f"stream {stream!r} is closed already")
        await held.close()

    def _held(self, stream: str) -> EventStream:
        if stream not in self._streams:
            raise StreamClosed(f"stream {stream!r} is closed, or none of connector {self.name!r}")
        return self._streams[stream]


def _replay(data: bytes, receive: Any) -> Any:
    """Receives a body that was read already, then what comes after it."""
    left = [{"type": "http.request", "body": data, "more_body": False}]

    async def received() -> Any:
        return left.pop() if left else await receive()

    return received


async def end(stream: EventStream) -> None:
    """Close a stream, whether its client still reads it or not."""
    # A client that takes nothing has been cut off.
    with contextlib.suppress(StreamClosed):
        await stream.close()


def _shape(path: str) -> list[str]:
    """What a path matches, whatever its parameters are called."""
    return ["{}" if part.startswith("{") else part for part in path.split("/")]
