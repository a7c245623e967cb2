"""A request as blocks make it, and what came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from flowrt.connectors.http_client.paths import bare

_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Request:
    """`path` is below the connector's base URL and may end with a query; `query` is added to that.

    A redirect that leads out of `below`, another path, is refused.
    """

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""
    below: str = ""

    def __str__(self) -> str:
        return f"{self.method} {bare(self.path)}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered with; `content_type` is empty where the server gave none."""

    status: int
    content_type: str
    content: bytes

    @property
    def said(self) -> str:
        """Status, its name and the beginning of the body, for an error text."""
        try:
            status = f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            status = str(self.status)
        text = " ".join(self.content[: 4 * _SHOWN].decode("utf-8", "replace").split())
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
        return f"{status}: {shown}" if shown else status
