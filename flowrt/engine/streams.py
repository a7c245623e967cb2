"""Open streams of server-sent events, as blocks that write to them see them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from flowrt.errors import FlowError


class StreamClosed(FlowError):
    """The stream is not there, or no longer: its client left, or it was closed."""


@runtime_checkable
class Streams(Protocol):
    """A connector that holds streams open, each under an id of its own.

    The address of a stream is `<connector>:<id>`; it travels in `vars.sseStream`.
    """

    async def send_event(self, stream: str, event: str, data: str) -> None:
        """Write one frame; an empty `event` leaves its name out. Raises `StreamClosed`."""
        ...

    async def close_stream(self, stream: str) -> None:
        """End the stream after what was written. Raises `StreamClosed`."""
        ...
