"""How values and keys become bytes, the same in every store."""

from __future__ import annotations

import json
import math
from typing import Any

JSON, BYTES, LOG = 0, 1, 2
"""The kinds of a key, as stored."""


def encode_value(value: Any) -> tuple[int, bytes]:
    """The kind and the bytes of a value.

    Raises `ValueError` naming the path for what is neither bytes nor JSON: found here, it names
    the place; found when it is read, the model has been paid (FB-49).
    """
    if isinstance(value, bytes | bytearray):
        return BYTES, bytes(value)
    return JSON, encode_json(value)


def encode_json(value: Any) -> bytes:
    """Compact ASCII JSON; NUL and lone surrogates are escapes, so they come back as they were."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot be stored: {_fault(value, '', 0) or error}") from error


def decode_value(kind: int, data: bytes) -> Any:
    """The value that was stored."""
    return bytes(data) if kind == BYTES else json.loads(data)


def encode_key(key: str) -> bytes:
    """A key in UTF-8, whose byte order is the order of code points; lone surrogates survive."""
    return key.encode("utf-8", "surrogatepass")


def decode_key(data: bytes) -> str:
    """The key that was stored."""
    return bytes(data).decode("utf-8", "surrogatepass")


_DEEPEST = 500


def _fault(value: Any, path: str, depth: int) -> str:
    """What in the value is not JSON, and where."""
    if depth > _DEEPEST:
        return f"{path or 'the value'} nests deeper than {_DEEPEST} levels"
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                return f"{path or 'the value'} has the key {key!r}; keys must be strings"
            if fault := _fault(item, f"{path}.{key}".removeprefix("."), depth + 1):
                return fault
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if fault := _fault(item, f"{path}[{index}]", depth + 1):
                return fault
    else:
        return _scalar_fault(value, path)
    return ""


def _scalar_fault(value: Any, path: str) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"{path or 'the value'} is {value!r}, which JSON cannot hold"
    if not isinstance(value, str | int | float | bool | None):
        return f"{path or 'the value'} is a {type(value).__name__}, not a JSON value"
    return ""
