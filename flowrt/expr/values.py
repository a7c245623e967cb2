"""From what the CEL runtime gives back to JSON values (dialect 3.2; integers stay integers)."""

from __future__ import annotations

import base64
import math
from datetime import UTC, datetime, timedelta
from typing import Any

_AS_IS = frozenset({str, int, bool, type(None)})


def json_value(value: Any, path: str = "") -> Any:
    """The value as JSON: bytes in base64, timestamps in RFC 3339, durations as ``90s``.

    Raises `ValueError` naming the path inside the value where JSON has no such thing: NaN,
    Infinity, a key that is no string, a type.
    """
    kind = type(value)
    if kind in _AS_IS:
        return value
    if kind is float:
        if math.isfinite(value):
            return value
        raise ValueError(f"{_at(path)} is {value!r}, which JSON cannot hold")
    if kind is dict:
        return {
            _key(key, path): item if type(item) in _AS_IS else json_value(item, f"{path}.{key}")
            for key, item in value.items()
        }
    if kind is list:
        return [
            item if type(item) in _AS_IS else json_value(item, f"{path}[{index}]")
            for index, item in enumerate(value)
        ]
    return _other(value, path)


def _other(value: Any, path: str) -> Any:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return timestamp_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    raise ValueError(f"{_at(path)} is a CEL {type(value).__name__.lower()}, not a JSON value")


def _key(key: Any, path: str) -> str:
    if type(key) is not str:
        raise ValueError(f"{_at(path)} has the key {key!r}; keys must be strings in JSON")
    return key


def _at(path: str) -> str:
    return f"the result at {path.removeprefix('.')}" if path else "the result"


def timestamp_text(value: datetime) -> str:
    """RFC 3339 in UTC, with as many digits of the second as it has."""
    text = value.astimezone(UTC).isoformat().replace("+00:00", "")
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "Z"


def duration_text(value: timedelta) -> str:
    """Seconds, such as ``90s`` and ``1.5s``."""
    micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    seconds, rest = divmod(abs(micros), 1_000_000)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"{'-' if micros < 0 else ''}{seconds}{fraction}s"
