"""Requests to the fake Chat Completions API, sent without any client library."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from flowrt.testing import FakeCompletionsAPI


def tool(name: str = "look", **parameters: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}, **parameters}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def calling(*ids: str) -> dict[str, Any]:
    calls = [{"id": i, "type": "function", "function": {"name": "look", "arguments": "{}"}}
             for i in ids]  # fmt: skip
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call: str, content: Any = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": content}


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages) or [user("hi")], **more}


def post(
    api: FakeCompletionsAPI,
    sent: Any,
    *,
    path: str = "/chat/completions",
    headers: dict[str, str] | None = None,
    method: str = "POST",
) -> tuple[int, Any, http.client.HTTPMessage]:
    """Status, body (decoded where it is JSON) and headers of the answer to `sent`."""
    url = urlsplit(api.base_url)
    connection = http.client.HTTPConnection(url.netloc, timeout=10)
    try:
        data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        given = {"authorization": "Bearer k"} if headers is None else headers
        connection.request(method, url.path + path, data, given)
        answer = connection.getresponse()
        text = answer.read().decode()
        parsed = json.loads(text) if answer.headers["content-type"] == "application/json" else text
        return answer.status, parsed, answer.headers
    finally:
        connection.close()


def chunks(text: str) -> list[dict[str, Any]]:
    """The chunks of a stream, which has to end as the API's do."""
    *lines, last = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    assert "[DONE]" == last
    return [json.loads(line) for line in lines]
