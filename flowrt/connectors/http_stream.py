"""One answer that stays open: server-sent events, written as they come."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

from flowrt.engine.streams import StreamClosed
from flowrt.ids import new_id

Send = Callable[[dict[str, Any]], Awaitable[None]]
HeaderPairs = list[tuple[bytes, bytes]]

ABORT = "flowrt.abort"
"""In the `state` of a scope: breaks the connection, whatever is left to write."""

_HEADERS: HeaderPairs = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    # nginx holds an answer back until it has enough of it, unless it is told not to.
    (b"x-accel-buffering", b"no"),
]
_LINES = re.compile("\r\n|\r|\n")


class EventStream:
    """The stream of one request. Its first frame commits the answer to being a stream.

    Nothing is buffered here: a frame is handed to the connection before `write` returns, and waits
    where the client is behind. One that takes nothing for `patience` seconds (0: for ever) loses
    the stream, so that it costs the flow that time once.
    """

    def __init__(
        self,
        send: Send,
        *,
        patience: float,
        abort: Callable[[], None],
        headers: Callable[[], HeaderPairs],
        committing: Callable[[], None],
    ) -> None:
        self.id = new_id()
        self.committed = False
        self.ended = asyncio.Event()
        """Set once nothing more can be written: closed, or the client is gone."""
        self._send = send
        self._patience = patience or None
        self._abort = abort
        self._headers = headers
        self._committing = committing
        self._lock = asyncio.Lock()

    @property
    def closed(self) -> bool:
        """Whether nothing more can be written."""
        return self.ended.is_set()

    async def write(self, event: str, data: str) -> None:
        """Write one frame. Raises `StreamClosed`."""
        await self._written(frame(event, data))

    async def comment(self) -> None:
        """Show proxies and the client that the stream is alive. Raises `StreamClosed`."""
        await self._written(b": \n\n")

    async def open(self) -> None:
        """Commit the answer to being a stream, before there is anything to write."""
        await self._written(b"")

    async def close(self) -> None:
        """End the stream; one that is closed stays so."""
        async with self._lock:
            if self.closed:
                return
            if self.committed:
                await self._sent({"type": "http.response.body", "body": b""})
            self.ended.set()

    def leave(self) -> None:
        """Note that the client is gone."""
        self.ended.set()

    async def _written(self, data: bytes) -> None:
        async with self._lock:
            if self.closed:
                raise StreamClosed(
                    f"stream {self.id!r} is closed: its client left, or it was ended"
                )
            body = {"type": "http.response.body", "body": data, "more_body": True}
            if self.committed:
                await self._sent(body)
                return
            self.committed = True
            self._committing()
            headers = [*_HEADERS, *self._headers()]
            start = {"type": "http.response.start", "status": 200, "headers": headers}
            await self._sent(start, body)

    async def _sent(self, *messages: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(self._patience):
                for message in messages:
                    await self._send(message)
        except TimeoutError:
            self.ended.set()
            self._abort()
            raise StreamClosed(
                f"stream {self.id!r} is closed: its client took nothing for {self._patience:g}s"
            ) from None


def frame(event: str, data: str) -> bytes:
    """A frame as it is sent; line ends of any kind in `data` become line ends of the client."""
    head = f"event: {event}\n" if event else ""
    if "\n" in data or "\r" in data:
        data = "\ndata: ".join(_LINES.split(data))
    return f"{head}data: {data}\n\n".encode("utf-8", "replace")
