"""An answer over HTTP that is whole."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from flowrt.observe.masking import mask_text

NO_BODY = (204, 304)
"""Statuses whose answers have none."""


class Answer(NamedTuple):
    """Status, headers and body. An empty body has no content type."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""

    async def send(self, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """Send it whole."""
        headers = self.headers
        if self.status not in NO_BODY:
            headers = [*headers, (b"content-length", str(len(self.body)).encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


SOON, CLOSE = (b"retry-after", b"1"), (b"connection", b"close")
"""Headers that say: come again; and: not on this connection."""

JSON = (b"content-type", b"application/json")


def refusal(status: int, text: str, *headers: tuple[bytes, bytes]) -> Answer:
    """``{"error": text}``, without secrets."""
    body = json.dumps({"error": mask_text(text)}, ensure_ascii=False, separators=(",", ":"))
    return Answer(status, [JSON, *headers], body.encode("utf-8", "replace"))
