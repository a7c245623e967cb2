"""Requests to the fake API, sent without any client library."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from flowrt.testing import FakeMessagesAPI

TOOL = {"name": "look", "input_schema": {"type": "object"}}
MARK = {"cache_control": {"type": "ephemeral"}}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [block(item) for item in content]}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [block(item) for item in content]}


def block(item: Any) -> dict[str, Any]:
    return {"type": "text", "text": item} if isinstance(item, str) else item


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "look", "input": {}}


def result(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": "found", **more}


def body(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": list(messages) or [user("hi")], **more}


def post(
    api: FakeMessagesAPI,
    sent: Any,
    *,
    path: str = "/v1/messages",
    headers: dict[str, str] | None = None,
    method: str = "POST",
) -> tuple[int, Any, http.client.HTTPMessage]:
    """Status, body (decoded where it is JSON) and headers of the answer to `sent`."""
    connection = http.client.HTTPConnection(urlsplit(api.base_url).netloc, timeout=10)
    try:
        data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        connection.request(method, path, data, {"x-api-key": "k"} if headers is None else headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        parsed = json.loads(text) if answer.headers["content-type"] == "application/json" else text
        return answer.status, parsed, answer.headers
    finally:
        connection.close()


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:")]
