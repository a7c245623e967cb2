"""From the result of a flow to an HTTP answer (dialect 6.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from flowrt.connectors.http_answer import JSON, NO_BODY, Answer, refusal
from flowrt.message import Message
from flowrt.observe.log import Logger

_CONTROL = re.compile("[\x00-\x1f\x7f]")
OK = 200


def answer_of(message: Message, header_names: Sequence[str], log: Logger) -> Answer:
    """The answer of a flow that completed."""
    status = _status(message, log)
    headers = response_headers(message, header_names, log)
    if status in NO_BODY or message.body is None:
        return Answer(status, headers)
    if message.raw and _is_raw(message.body):
        kind, text = message.body["contentType"], message.body["rawData"]
        return Answer(status, [(b"content-type", _kind(kind, log)), *headers], _octets(text))
    return Answer(status, [JSON, *headers], _octets(as_json(message.body)))


def as_json(value: Any) -> str:
    """`value` in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def failed(text: str) -> Answer:
    """The answer of a flow that failed."""
    return refusal(500, text)


def response_headers(
    message: Message, names: Sequence[str], log: Logger
) -> list[tuple[bytes, bytes]]:
    """The headers that variables give; one that no header can carry is left out, with a line."""
    headers = []
    for name in names:
        value = message.vars.get(name)
        if isinstance(value, bool):
            value = "true" if value else "false"
        if value is None or isinstance(value, list | dict):
            continue
        text = str(value)
        if _CONTROL.search(text):
            # Often the client's own text: written out, it could add headers of its own.
            log.warning("a response header was left out: it is not one line", header=name)
            continue
        headers.append((name.lower().encode(), _octets(text.strip())))
    return headers


def _status(message: Message, log: Logger) -> int:
    value = message.vars.get("httpStatus")
    if value is None:
        return OK
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    # Below 200 the client would wait for another one.
    if isinstance(value, int) and not isinstance(value, bool) and 200 <= value <= 599:
        return value
    log.warning("vars.httpStatus is no status; 200 was answered", found=repr(value)[:80])
    return OK


def _is_raw(body: Any) -> bool:
    return isinstance(body, dict) and all(
        isinstance(body.get(key), str) for key in ("contentType", "rawData")
    )


def _kind(content_type: str, log: Logger) -> bytes:
    if _CONTROL.search(content_type) or not content_type.isascii() or not content_type.strip():
        log.warning("a content type cannot be sent; text/plain was", found=content_type[:80])
        return b"text/plain; charset=utf-8"
    return content_type.strip().encode()


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "replace")
