"""HTTP/1.1 as uvicorn speaks it, with an end to clients that never finish what they do."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from flowrt.connectors.http_answer import refusal
from flowrt.connectors.http_stream import ABORT
from flowrt.observe.flood import Flood
from flowrt.observe.log import get_logger

TURNED_AWAY = 64
"""Connections over the limit that may wait to be told so; one more is closed without a word."""

TELL = 1.0
"""Seconds that such a connection has to send something that can be answered."""

_log = get_logger("flowrt.http")


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """How patient a server is with its clients, in seconds, and how many there may be.

    `head`: to send the head of a request. `idle`: between two requests of a connection. `write`: to
    take anything of what is written. 0 of `head` and `write`: for ever.
    """

    head: float = 30.0
    idle: float = 60.0
    write: float = 30.0
    keep_alive: bool = True
    connections: int = 2000


class Clients:
    """The connections of one server: what they may do, and which of them wait for a request."""

    def __init__(self, limits: ServerLimits, what: str) -> None:
        self.limits = limits
        self.idle: dict[Bounded, None] = {}
        """Those that have sent nothing of a request, the one that waits longest first."""
        self.too_many = Flood(_log, f"{what}: connections were turned away, there are too many")
        self.unfinished = Flood(_log, f"{what}: connections were closed, the head did not end")
        self.unread = Flood(_log, f"{what}: connections were closed, the client took nothing")

    def make_room(self) -> bool:
        """Close the connection that has been idle for longest; whether there was one."""
        for client in self.idle:
            client.hang_up()
            return True
        return False

    def flush(self) -> None:
        """Tell what is counted and not told yet."""
        for flood in (self.too_many, self.unfinished, self.unread):
            flood.flush()


def protocol(clients: Clients) -> type[Bounded]:
    """The protocol class of the server with these clients."""
    return type("Bounded", (Bounded,), {"clients": clients})


class Bounded(H11Protocol):
    """Closes a connection whose next request does not come to the end of its head in time, one
    whose client does not take the answer, and those over the limit.

    uvicorn itself waits for ever and takes everybody: one machine could hold every socket that the
    process may open.
    """

    clients: Clients

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # A connection keeps what it was made with, also where a reload changes the server's.
        self._limits = self.clients.limits
        self.timeout_keep_alive = max(1, round(self._limits.idle))
        self.app_state = {**self.app_state, ABORT: self._took_nothing}
        self._head: asyncio.TimerHandle | None = None
        self._turned_away = False
        over = len(self.connections) - self._limits.connections
        if over > 0 and not self.clients.make_room():
            self._turn_away(over)
            return
        self.clients.idle[self] = None
        self._await_head()

    def data_received(self, data: bytes) -> None:
        if self._turned_away:
            self._tell()
            return
        self.clients.idle.pop(self, None)
        super().data_received(data)
        if self._between_requests:
            self._await_head()
        else:
            self._head_came()

    def connection_lost(self, exc: Exception | None) -> None:
        self.clients.idle.pop(self, None)
        self._head_came()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            # Answered already, by a 404 say, which waits for no body. uvicorn would answer again,
            # which raises: a traceback in the log for each such request.
            self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._between_requests and not self.transport.is_closing():
            self.clients.idle[self] = None

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size() and not self.transport.is_closing():
            # The answer is not out yet: until it is, this is a client that reads slowly.
            self._watch_writing(self.transport.get_write_buffer_size())
            return
        super().timeout_keep_alive_handler()

    def hang_up(self) -> None:
        """Close a connection between two requests."""
        self.clients.idle.pop(self, None)
        self.transport.abort()

    @property
    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        """From the first byte on; what trickles in afterwards gives no new time."""
        if self._limits.head and self._head is None:
            self._head = self.loop.call_later(self._limits.head, self._no_head)

    def _head_came(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _no_head(self) -> None:
        self._head = None
        if self._between_requests:
            # One that has sent nothing is no news: browsers connect before they have a request.
            if self not in self.clients.idle:
                self.clients.unfinished.note(seconds=self._limits.head)
            self.transport.abort()

    def _turn_away(self, over: int) -> None:
        self.clients.too_many.note(max_connections=self._limits.connections)
        if over > TURNED_AWAY:
            self.transport.abort()
            return
        # Not told yet: closed with its request unread, it would get a reset instead of the answer.
        self._turned_away = True
        self._head = self.loop.call_later(TELL, self.transport.abort)

    def _tell(self) -> None:
        answer = refusal(503, "there are too many connections")
        head = (
            "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
            f"content-type: application/json\r\ncontent-length: {len(answer.body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + answer.body)
        self.transport.close()

    def _took_nothing(self) -> None:
        self.clients.unread.note(seconds=self._limits.write)
        self.transport.abort()

    def _watch_writing(self, left: int) -> None:
        if self._limits.write:
            self.timeout_keep_alive_task = self.loop.call_later(
                self._limits.write, self._still_writing, left
            )

    def _still_writing(self, left: int) -> None:
        now = self.transport.get_write_buffer_size()
        if now >= left > 0:
            self._took_nothing()
        elif now:
            self._watch_writing(now)
        else:
            super().timeout_keep_alive_handler()
