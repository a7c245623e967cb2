"""HTTP/1.1 as uvicorn speaks it, with an end to clients that never finish what they do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

from flowrt.connectors.http_stream import ABORT

if TYPE_CHECKING:
    from flowrt.connectors.http_server import ServerLimits


def protocol(limits: ServerLimits) -> type[H11Protocol]:
    """The protocol class of a server with these limits."""

    class Bounded(_Bounded):
        """With the limits of one server."""

        head_limit = limits.head
        write_limit = limits.write

    return Bounded


class _Bounded(H11Protocol):
    """Closes a connection whose next request does not come to the end of its head in time, and one
    whose client does not take the answer.

    uvicorn itself waits for ever for both: one machine could hold every socket of a server.
    """

    head_limit = 0.0
    write_limit = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, ABORT: transport.abort}
        self._head: asyncio.TimerHandle | None = None
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._between_requests:
            self._await_head()
        else:
            self._head_came()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size() and not self.transport.is_closing():
            # The answer is not out yet: until it is, this is a client that reads slowly.
            self._watch_writing(self.transport.get_write_buffer_size())
            return
        super().timeout_keep_alive_handler()

    @property
    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        """From the first byte on; what trickles in afterwards gives no new time."""
        if self.head_limit and self._head is None:
            self._head = self.loop.call_later(self.head_limit, self._no_head)

    def _head_came(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _no_head(self) -> None:
        self._head = None
        if self._between_requests:
            self.transport.abort()

    def _watch_writing(self, left: int) -> None:
        if self.write_limit:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.write_limit, self._still_writing, left
            )

    def _still_writing(self, left: int) -> None:
        now = self.transport.get_write_buffer_size()
        if now >= left > 0:
            self.transport.abort()
        elif now:
            self._watch_writing(now)
        else:
            super().timeout_keep_alive_handler()
