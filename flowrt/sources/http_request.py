"""From an HTTP request to a message (dialect 6.1)."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import parse_qsl

from flowrt.connectors.http_answer import Answer, refusal
from flowrt.expr.multipart import decode_parts
from flowrt.message import Message, clean, clean_text
from flowrt.observe.flood import Flood
from flowrt.sources.http_settings import HttpSourceSettings

Headers = list[tuple[bytes, bytes]]

MOST_QUERY = 1000
"""Fields of a query string."""


class Refused(Exception):
    """A request that no flow gets to see, and what is answered."""

    def __init__(self, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
        self.status = status
        self.headers = headers
        super().__init__(text)

    @property
    def answer(self) -> Answer:
        """What the client is told."""
        return refusal(self.status, str(self), *self.headers)


class Stopped(Exception):
    """A request to a source that works on none any more."""


class Gone(Exception):
    """The client left before its request was whole."""


async def read_body(scope: Any, receive: Any, most: int, patience: float, slow: Flood) -> bytes:
    """The body, of `most` bytes, all of it within `patience` seconds (0: for ever).

    One that takes longer is counted in `slow`. Raises `Refused` and `Gone`.
    """
    too_large = Refused(413, f"the body has more than {most} bytes")
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > most:
            raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(patience or None):
            while True:
                event = await receive()
                if event["type"] == "http.disconnect":
                    raise Gone
                body += event.get("body", b"")
                if len(body) > most:
                    raise too_large
                if not event.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        slow.note(path=scope["path"], seconds=patience)
        raise Refused(408, f"the body did not come within {patience:g}s") from None


class Reader:
    """Makes messages of the requests of one source."""

    def __init__(self, settings: HttpSourceSettings) -> None:
        self._settings = settings
        self._headers = [(name, name.lower().encode()) for name in settings.headers]
        correlation = settings.correlation_id_header
        self._correlation = correlation.lower().encode() if correlation else None

    def message(self, scope: Any, data: bytes) -> Message:
        """The message of a request. Raises `Refused` with 400 for a body that cannot be read."""
        headers = scope["headers"]
        content_type = clean_text(header(headers, b"content-type"))
        variables: dict[str, Any] = {
            "method": scope["method"],
            "query": _query(scope["query_string"]),
        }
        for name, value in scope.get("path_params", {}).items():
            variables[name] = clean_text(value)
        for name, key in self._headers:
            variables[name] = clean_text(header(headers, key))
        if self._settings.raw_body_var:
            variables[self._settings.raw_body_var] = _text(data)
        message = Message(None, variables)
        if self._correlation is not None:
            message.correlation_id = clean_text(header(headers, self._correlation))
        message.body, message.raw = self._body(data, content_type)
        return message

    def _body(self, data: bytes, content_type: str) -> tuple[Any, bool]:
        if content_type.lower().lstrip().startswith("multipart/form-data"):
            try:
                parts = decode_parts(data, content_type)
            except ValueError as error:
                raise Refused(400, str(error)) from error
            # Files are no text; `parts` has them in base64, and here they are for show.
            text = clean_text(data.decode("utf-8", "replace"))
            return {"contentType": content_type, "rawData": text, "parts": parts}, True
        if self._settings.raw_body:
            kind = content_type or "application/octet-stream"
            return {"contentType": kind, "rawData": _text(data)}, True
        return (read_json(data) if data else None), False


def header(headers: Headers, name: bytes) -> str:
    """The value of a header; of one that comes several times, all of them."""
    found = [value for key, value in headers if key == name]
    return b", ".join(found).decode("latin-1") if found else ""


def _query(raw: bytes) -> dict[str, str]:
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_QUERY)
    except ValueError as error:
        raise Refused(400, f"the query has more than {MOST_QUERY} fields") from error
    query: dict[str, str] = {}
    for name, value in pairs:
        query.setdefault(clean_text(name), clean_text(value))
    return query


def _text(data: bytes) -> str:
    try:
        return clean_text(data.decode())
    except UnicodeDecodeError as error:
        raise Refused(
            400, "the body is no UTF-8 text; files are sent as multipart/form-data"
        ) from error


def read_json(data: bytes) -> Any:
    """The JSON of a body. Raises `Refused` with 400."""
    try:
        return clean(json.loads(data.decode("utf-8-sig"), parse_constant=_no_constant))
    except UnicodeDecodeError as error:
        raise Refused(400, "the body is no UTF-8 text") from error
    except RecursionError as error:
        raise Refused(400, "the body is nested too deeply") from error
    except ValueError as error:
        raise Refused(400, f"the body is no JSON: {error}") from error


def _no_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is none")
