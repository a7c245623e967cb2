"""What may be stored and how it becomes bytes, the same in every store."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Literal

from flowrt.errors import StoreError

JSON, BYTES, LOG = 0, 1, 2
"""The kinds of a key, as stored."""

DEEPEST = 500
"""Levels a JSON value may nest. Fixed, so that what one store takes the others can read."""

LONGEST = 100 * 365 * 86400.0
"""Seconds that a lifetime is cut to; Redis refuses times that overflow its clock."""

_SCALARS = frozenset({str, int, float, bool, type(None)})


def encode_value(value: Any) -> tuple[int, bytes]:
    """The kind and the bytes of a value.

    Raises `ValueError` naming the path for what is neither bytes nor JSON: found here, it names
    the place; found when it is read, the model has been paid (FB-49).
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return BYTES, bytes(value)
    return JSON, encode_json(value)


def encode_json(value: Any) -> bytes:
    """Compact ASCII JSON: NUL and lone surrogates are escapes, so every store takes them.

    Two surrogates that form a pair come back as their character. Raises `ValueError` naming the
    path of what would not come back equal: other types, tuples, keys that are not strings, NaN
    and infinities, more than `DEEPEST` levels.
    """
    try:
        data = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot be stored: {_fault(value, '', 0) or error}") from error
    # The encoder turns the key 1 into "1" and a tuple into a list without a word.
    if not _comes_back(value):
        raise ValueError(f"cannot be stored: {_fault(value, '', 0)}")
    return data


def decode_value(kind: int, data: bytes) -> Any:
    """The value that was stored."""
    return bytes(data) if kind == BYTES else json.loads(data)


def encode_key(key: str) -> bytes:
    """A key in UTF-8, whose byte order is the order of code points; lone surrogates survive."""
    return key.encode("utf-8", "surrogatepass")


def decode_key(data: bytes) -> str:
    """The key that was stored."""
    return bytes(data).decode("utf-8", "surrogatepass")


def encode_entries(entries: Sequence[bytes]) -> list[bytes]:
    """The entries of a log. Raises `TypeError` for what is not bytes."""
    return [entry if type(entry) is bytes else bytes(memoryview(entry)) for entry in entries]


def check_kind(key: str, kind: int, *, log: bool) -> None:
    """Raise `StoreError` where a value is stored but a log was meant, or the other way round."""
    if (kind == LOG) != log:
        found, meant = ("a value", "a log") if log else ("a log", "a value")
        raise StoreError(f"key {key!r} holds {found}, not {meant}; delete it first")


def kind_name(kind: int) -> Literal["value", "log"]:
    """The kind as a scan says it."""
    return "log" if kind == LOG else "value"


def lifetime(ttl: float | None) -> float | None:
    """A `ttl` in seconds, at most `LONGEST`. Raises `ValueError` unless it is above 0."""
    if ttl is None:
        return None
    if not ttl > 0:
        raise ValueError(f"a ttl is a number of seconds above 0, not {ttl!r}")
    return min(ttl, LONGEST)


def _comes_back(value: Any) -> bool:
    """Whether the JSON of a value reads back equal to it."""
    level = [value]
    for _ in range(DEEPEST + 1):
        below: list[Any] = []
        for item in level:
            # The exact type first: most of a value is plain strings and numbers.
            if type(item) in _SCALARS:
                continue
            if isinstance(item, dict):
                for key in item:
                    if not isinstance(key, str):
                        return False
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif not isinstance(item, str | int | float):
                return False
        if not below:
            return True
        level = below
    return False


def _fault(value: Any, path: str, depth: int) -> str:
    """What in the value cannot be stored, and where; empty where nothing is found."""
    if depth > DEEPEST:
        return f"a value nests deeper than {DEEPEST} levels"
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                return f"{path or 'the value'} has the key {key!r}; keys must be strings"
            if fault := _fault(item, f"{path}.{key}".removeprefix("."), depth + 1):
                return fault
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if fault := _fault(item, f"{path}[{index}]", depth + 1):
                return fault
    else:
        return _scalar_fault(value, path or "the value")
    return ""


def _scalar_fault(value: Any, path: str) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"{path} is {value!r}, which JSON cannot hold"
    if not isinstance(value, str | int | float | None):
        return f"{path} is of type {type(value).__name__}, which is not JSON"
    return ""
