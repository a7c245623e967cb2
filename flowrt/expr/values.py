"""From what the CEL runtime gives back to JSON values (dialect 3.2; integers stay integers)."""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

_AS_IS = frozenset({str, int, bool, type(None)})
_KINDS = {
    str: "string",
    bool: "bool",
    int: "int",
    float: "double",
    list: "list",
    dict: "map",
    type(None): "null",
}


class NotJson(ValueError):
    """A value that JSON cannot hold; the text names its path inside the result."""


def kind_of(value: Any) -> str:
    """The CEL name of a JSON value's type."""
    return _KINDS[type(value)]


def compact(value: Any) -> str:
    """Compact JSON with its keys in order, so that equal values are equal texts.

    Whole doubles are written without a point (``42``), as where JSON has no integers.
    """
    text = _dumps(value)
    # The ".0" may also be part of a string, which costs a second pass and changes nothing.
    return _dumps(_whole(value)) if ".0" in text else text


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _whole(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return value


def fitting(value: Any) -> Any:
    """The JSON value with integers beyond 64 bits as doubles, the nearest that CEL can hold.

    Raises `NotJson` for one beyond the largest double, and for an infinity.
    """
    kind = type(value)
    if kind is int and not -(2**63) <= value < 2**63:
        try:
            return float(value)
        except OverflowError:
            raise NotJson("a number is larger than any double") from None
    if kind is float and math.isinf(value):
        raise NotJson("a number is larger than any double")
    if kind is list:
        return [fitting(item) for item in value]
    if kind is dict:
        return {key: fitting(item) for key, item in value.items()}
    return value


def json_value(value: Any, path: str = "") -> Any:
    """A plain value of the runtime's as JSON: bytes in base64, RFC 3339 timestamps, ``90s``.

    Maps come back in the order of their keys: the runtime's own order changes from one process to
    the next, and with it every prompt made of a map. Raises `NotJson` for NaN, Infinity, a key
    that is no string, a type.
    """
    kind = type(value)
    if kind in _AS_IS:
        return value
    if kind is float:
        if math.isfinite(value):
            return value
        raise NotJson(f"{_at(path)} is {_double(value)}, which JSON cannot hold")
    if kind is dict:
        return {
            key: item if type(item) in _AS_IS else json_value(item, f"{path}.{key}")
            for key, item in _ordered(value, path)
        }
    if kind is list:
        return [
            item if type(item) in _AS_IS else json_value(item, f"{path}[{index}]")
            for index, item in enumerate(value)
        ]
    return _other(value, path)


def careful_value(value: Any, path: str = "") -> Any:
    """A value of the runtime's as JSON, for sources that can make optionals.

    Asked for its plain value at once, the runtime writes a null pointer where an optional stands
    in a list or map, and the process dies; asked one by one, it raises. Slower by far.
    """
    try:
        inner = value.value()
    except TypeError:
        raise NotJson(
            f"{_at(path)} is an optional; give it a value with .orValue(…), or write it as "
            "{?key: …} or [?…] to leave it out"
        ) from None
    if type(inner) is dict:
        return {key: careful_value(item, f"{path}.{key}") for key, item in _ordered(inner, path)}
    if type(inner) is list:
        return [careful_value(item, f"{path}[{index}]") for index, item in enumerate(inner)]
    return json_value(inner, path)


def _ordered(table: dict[Any, Any], path: str) -> list[tuple[str, Any]]:
    for key in table:
        if type(key) is not str:
            raise NotJson(
                f"{_at(path)} has the key {key!r}; keys must be strings in JSON, use string(…)"
            )
    return sorted(table.items(), key=_key) if len(table) > 1 else list(table.items())


def _key(entry: tuple[str, Any]) -> str:
    return entry[0]


def _other(value: Any, path: str) -> Any:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return timestamp_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    raise NotJson(f"{_at(path)} is the type {value}, not a JSON value")


def _at(path: str) -> str:
    return f"the result at {path.removeprefix('.')}" if path else "the result"


def _double(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


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
