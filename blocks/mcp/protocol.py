"""JSON-RPC as MCP uses it: what a request must be, and how it is answered."""

from __future__ import annotations

from typing import Any, NamedTuple

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18")

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603
NOT_THERE = -32002
"""MCP's own: a resource that is not there."""


class Call(NamedTuple):
    """A request; a notification has no `id` and gets no answer."""

    method: str
    params: dict[str, Any]
    id: str | int | float | None


class RpcError(Exception):
    """A call that is answered with an error."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        super().__init__(text)


def read_call(body: Any) -> Call:
    """The call that a body is. Raises `RpcError`."""
    if not isinstance(body, dict):
        raise RpcError(INVALID_REQUEST, "a request is one JSON object; batches are not taken")
    if body.get("jsonrpc") != "2.0" or not isinstance(body.get("method"), str):
        raise RpcError(INVALID_REQUEST, 'a request has jsonrpc "2.0" and a method')
    params = body.get("params")
    if not isinstance(params, dict | None):
        raise RpcError(INVALID_PARAMS, "params is an object")
    return Call(body["method"], params or {}, request_id(body) if "id" in body else None)


def request_id(body: Any) -> str | int | float | None:
    """The id of a request, however wrong the rest of it is; None where it has none."""
    id_ = body.get("id") if isinstance(body, dict) else None
    return id_ if isinstance(id_, str | int | float) and not isinstance(id_, bool) else None


def is_notification(body: Any) -> bool:
    """Whether nobody waits for an answer."""
    return isinstance(body, dict) and "id" not in body and isinstance(body.get("method"), str)


def version_for(asked: Any) -> str:
    """The protocol version to speak: the one asked for, the latest for one that nobody knows."""
    if asked is None:
        return VERSIONS[0]
    return str(asked) if asked in VERSIONS else VERSIONS[-1]


def answer(id_: str | int | float | None, result: dict[str, Any]) -> dict[str, Any]:
    """The answer to a call."""
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def failure(id_: str | int | float | None, error: RpcError) -> dict[str, Any]:
    """The answer to a call that cannot be worked."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": error.code, "message": str(error)}}


def text_param(params: dict[str, Any], name: str) -> str:
    """A parameter that must be a text. Raises `RpcError`."""
    value = params.get(name)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"params.{name} is a text, found {type(value).__name__}")
    return value


def map_param(params: dict[str, Any], name: str) -> dict[str, Any]:
    """A parameter that must be an object; without it, an empty one. Raises `RpcError`."""
    value = params.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RpcError(INVALID_PARAMS, f"params.{name} is an object, found {type(value).__name__}")
    return value
