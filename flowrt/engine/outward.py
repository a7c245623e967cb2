"""Whether what a service sends may leave this machine: in a suite it may not."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from flowrt.errors import ConnectorError
from flowrt.llm.connector import is_loopback

_told: ContextVar[Callable[[str], object] | None] = ContextVar("outward", default=None)


def stay_here(told: Callable[[str], object]) -> None:
    """From here on, in this context, refuse what would leave the machine.

    `told` is given what was refused, also where the flow recovers from it.
    """
    _told.set(told)


def leave(connector: str, url: str) -> None:
    """A connector is about to call `url`. Raises `ConnectorError` where that may not be.

    Connectors other than models call it before they connect; a suite would otherwise post to the
    real Slack, and delete in the real API.
    """
    told = _told.get()
    if told is None or is_loopback(url):
        return
    text = (
        f"connector {connector!r} would call {url}, which is not this machine; say what its blocks "
        "give under `mocks`, or allow it with --live"
    )
    told(text)
    raise ConnectorError(text)
