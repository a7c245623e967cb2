"""What `rest` and `rest-dynamic` share: from expressions to a request, from an answer to a body."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Literal

from pydantic import Field

from flowrt.clock import Clock
from flowrt.connectors.http_client.client import HttpClient
from flowrt.connectors.http_client.exchange import Answer, Request
from flowrt.engine.block import Settings
from flowrt.engine.fields import Expr
from flowrt.errors import FlowError
from flowrt.expr.functions import string_of
from flowrt.expr.multipart import encode_parts
from flowrt.ids import new_id
from flowrt.message import Message, clean, clean_text

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

_JSON = re.compile(r"\s*(?:application|text)/(?:[\w.+-]+\+)?json\s*(?:;|$)", re.IGNORECASE)
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^\s;"]+)', re.IGNORECASE)


class ExchangeSettings(Settings):
    """Settings of every block that calls an HTTP API."""

    connector: str = Field(min_length=1, description="The `http-client`.")
    body: Expr | None = Field(
        default=None,
        description="What is sent: a text as it is, anything else as JSON, null as nothing.",
    )
    body_type: Literal["auto", "multipart"] = Field(
        default="auto",
        description="`multipart`: the body is a map of parts, as `multipart()` and `addPart` make.",
    )
    encoding: Literal["text", "base64"] = Field(
        default="text", description="How an answer that is not JSON becomes text."
    )
    fail_on_error: bool = Field(default=True, description="Fail on a status of 400 or more.")
    status_var: str = Field(
        default="statusCode", min_length=1, description="The variable for the status."
    )


def pairs_of(values: Any, what: str) -> list[tuple[str, str]]:
    """Names and texts of a map: a list repeats its name, null leaves it out."""
    if values is None:
        return []
    if not isinstance(values, dict):
        raise FlowError(f"{what} must be a map, found {type(values).__name__}")
    pairs = []
    for name, value in values.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict | list):
                raise FlowError(f"{what}: {name!r} is a text, number or bool, or a list of those")
            if each is not None:
                pairs.append((str(name), each if isinstance(each, str) else string_of(each)))
    return pairs


def headers_of(values: Any) -> dict[str, str]:
    """Headers of a map; null leaves one out."""
    headers: dict[str, str] = {}
    for name, value in pairs_of(values, "headers"):
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def content_of(body: Any, body_type: str, headers: dict[str, str]) -> bytes:
    """The bytes of a body; `headers` get its type, unless they say one."""
    if body_type == "multipart":
        if not isinstance(body, dict):
            raise FlowError(f"bodyType multipart needs a map, found {type(body).__name__}")
        boundary = f"flowrt-{new_id()}"
        for name in [name for name in headers if name.lower() == "content-type"]:
            del headers[name]
        headers["Content-Type"] = f"multipart/form-data; boundary={boundary}"
        try:
            return encode_parts(body, boundary)
        except ValueError as error:
            raise FlowError(f"body: {error}") from None
    if body is None:
        return b""
    kind = "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = kind
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return text.encode()


async def exchange(
    client: HttpClient, request: Request, settings: ExchangeSettings, message: Message, clock: Clock
) -> Message:
    """Send the request and make its answer the message's body."""
    answer = await client.send(request, clock)
    # Before anything fails: an error chain decides by it.
    message.set(settings.status_var, answer.status)
    if answer.status >= 400 and settings.fail_on_error:
        raise FlowError(client.error(request, f"was answered with {answer.said}"))
    try:
        body, raw = _body_of(answer, settings.encoding)
    except ValueError as error:
        text = f"was answered with {answer.status} and {error}"
        raise FlowError(client.error(request, text)) from None
    message.body = body
    message.raw = raw
    message.body_schema = None
    return message


def _body_of(answer: Answer, encoding: str) -> tuple[Any, bool]:
    """The body, and whether it is raw content. Raises `ValueError` for what cannot be read."""
    content, kind = answer.content, answer.content_type
    if not content:
        return None, False
    if _JSON.match(kind):
        try:
            return clean(json.loads(content, parse_constant=_no_constant)), False
        except (ValueError, RecursionError) as error:
            raise ValueError(f"JSON that cannot be read: {error}") from None
    text = base64.b64encode(content).decode() if encoding == "base64" else _text_of(content, kind)
    return {"contentType": kind or "application/octet-stream", "rawData": text}, True


def _text_of(content: bytes, kind: str) -> str:
    named = _CHARSET.search(kind)
    charset = named[1] if named else "utf-8"
    try:
        return clean_text(content.decode(charset))
    except (LookupError, UnicodeDecodeError):
        raise ValueError(
            f"{kind or 'bytes'!r} that is no {charset} text; `encoding: base64` takes it as base64"
        ) from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
