"""The functions of the dialect (3.3) that the CEL runtime does not bring.

Arguments are plain values of the runtime's: bytes are `bytearray`, timestamps `datetime`,
durations `timedelta`. Bytes are given back as `bytearray` too: the runtime cuts `bytes` at the
first zero, which one SHA-256 in eight has. A `ValueError` becomes the evaluation's error. Text that
is made here is cleaned here (FB-50, FB-51): a decoded text can hold what the encoded one could not.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import uuid
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

from flowrt.clock import context_clock
from flowrt.expr.values import (
    compact,
    duration_text,
    fitting,
    json_value,
    kind_of,
    timestamp_text,
)
from flowrt.ids import new_id
from flowrt.message import clean, clean_text

_MOST_FIELDS = 10_000
_MOST_NUMBERS = 10_000
_PIECE = 32
_ORDERED = {bool, float, str, bytearray, datetime, timedelta}
_Bytes = bytes | bytearray


def now() -> datetime:
    """The time of this evaluation."""
    return context_clock().now()


def to_json(value: Any) -> str:
    """Compact JSON, keys in order."""
    return compact(json_value(value))


def from_json(text: str) -> Any:
    """The decoded value. NaN, Infinity and numbers beyond a double are not JSON."""
    try:
        return clean(fitting(json.loads(text, parse_constant=_refuse)))
    except (json.JSONDecodeError, RecursionError) as error:
        shown = text if len(text) <= 80 else text[:80] + "…"
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ValueError(f"fromJson: {what}, found {shown!r}") from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"fromJson: {constant} is not JSON")


def to_form_data(fields: dict[Any, Any]) -> str:
    """URL-encoded, keys sorted; a list repeats its key, a null is an empty value."""
    pairs: list[tuple[str, str]] = []
    for key, value in json_value(fields).items():
        values = value if isinstance(value, list) else [value]
        pairs += [(key, _flat(item, "toFormData", key)) for item in values]
    return urlencode(pairs)


def from_form_data(text: str) -> dict[str, Any]:
    """The fields, all of them text; a repeated key becomes a list."""
    fields: dict[str, Any] = {}
    pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    for key, value in clean([list(pair) for pair in pairs]):
        if key not in fields:
            fields[key] = value
        elif isinstance(fields[key], list):
            fields[key].append(value)
        else:
            fields[key] = [fields[key], value]
    return fields


def to_yaml(value: Any) -> str:
    """YAML, keys sorted; every text that a reader could take for something else is quoted."""
    from flowrt.expr.yaml12 import dump

    return dump(json_value(value))


def from_yaml(text: str) -> Any:
    """The decoded value, under YAML 1.2: `yes`, `on` and dates are text."""
    from flowrt.expr.yaml12 import load

    return clean(fitting(load(text)))


def to_env(values: dict[Any, Any]) -> str:
    """`KEY=VALUE` lines, sorted, which `fromEnv` and an env file read back the same."""
    lines = []
    for key, value in json_value(values).items():
        text = _flat(value, "toEnv", key)
        if "\n" in text or "\r" in text:
            raise ValueError(f"toEnv: {key!r} has a line break, which an env file cannot hold")
        if not key or key != key.strip() or "=" in key or key.startswith(("#", "export ")):
            raise ValueError(f"toEnv: {key!r} cannot be the name of a variable")
        # Quotes are taken off once when read, so they are put around what reading would change.
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
        lines.append(f'{key}="{text}"\n' if quoted or text != text.strip() else f"{key}={text}\n")
    return "".join(lines)


def from_env(text: str) -> dict[str, str]:
    """The pairs of an env file (dialect 1.3)."""
    values: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.removeprefix("export ").partition("=")
        if not equals:
            raise ValueError(f"fromEnv: line {number} has no '=', found {line!r}")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        values[name.strip()] = value
    return values


def _flat(value: Any, function: str, key: str) -> str:
    if isinstance(value, list | dict):
        raise ValueError(f"{function}: {key!r} is a {kind_of(value)}; it takes flat maps only")
    return "" if value is None else string_of(value)


def hmac_sha256(key: str | _Bytes, data: str | _Bytes) -> bytearray:
    """The HMAC-SHA-256 of `data`; text counts as UTF-8."""
    return bytearray(hmac.digest(_octets(key), _octets(data), "sha256"))


def hmac_sha1(key: str | _Bytes, data: str | _Bytes) -> bytearray:
    """The HMAC-SHA-1 of `data`; text counts as UTF-8."""
    return bytearray(hmac.new(_octets(key), _octets(data), hashlib.sha1).digest())


def secure_compare(one: str | _Bytes, other: str | _Bytes) -> bool:
    """Equality in a time that does not tell where the two differ."""
    return hmac.compare_digest(_octets(one), _octets(other))


def _octets(value: str | _Bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def hex_encode(data: _Bytes) -> str:
    """Lowercase hexadecimal."""
    return data.hex()


def new_uuid() -> str:
    """A random UUID, version 4."""
    return str(uuid.UUID(hex=new_id(), version=4))


def string_of(value: Any) -> str:
    """CEL's `string()`. Null, maps and lists are errors: a thread called "null" pools people."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _double_text(value)
    if isinstance(value, bytes | bytearray):
        try:
            return clean_text(value.decode())
        except UnicodeDecodeError:
            raise ValueError("string(): the bytes are not UTF-8; use base64.encode") from None
    if isinstance(value, datetime):
        return timestamp_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    way_out = "write x == null ? '' : string(x)" if value is None else "use toJson"
    raise ValueError(f"string() takes no {kind_of(value)}; {way_out}")


def _double_text(value: float) -> str:
    """The shortest text that reads back the same; whole numbers without a point."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+infinity" if value > 0 else "-infinity"
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def pairs_of(pairs: list[list[Any]]) -> dict[Any, Any]:
    """The map of `transformMap`, from its keys and values."""
    return dict(pairs)


def merged(entries: list[dict[Any, Any]]) -> dict[Any, Any]:
    """The map of `transformMapEntry`; ``{}`` adds nothing, a key given twice is an error."""
    table: dict[Any, Any] = {}
    for entry in entries:
        for key, value in entry.items():
            if key in table:
                raise ValueError(f"transformMapEntry: the key {key!r} is given twice")
            table[key] = value
    return table


def numbers(count: int) -> list[int]:
    """`lists.range`, bounded: the runtime's own takes 9 s and 3 GB for a hundred million."""
    if count > _MOST_NUMBERS:
        raise ValueError(f"lists.range({count}): at most {_MOST_NUMBERS:,} numbers")
    return list(range(count))


def pieces(items: list[Any] | dict[Any, Any]) -> list[list[Any]]:
    """A long list, or the keys of a map, in pieces."""
    return _cut(list(items))


def entries(items: list[Any] | dict[Any, Any]) -> list[list[Any]]:
    """The indexes and elements of a long list, or the keys and values of a map, in pieces."""
    found = items.items() if isinstance(items, dict) else enumerate(items)
    return _cut([list(entry) for entry in found])


def _cut(whole: list[Any]) -> list[list[Any]]:
    return [whole[at : at + _PIECE] for at in range(0, len(whole), _PIECE)]


def sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    """`sortBy`: stable, by keys of one type that has an order; numbers of any kind are one."""
    kinds = {float if type(key) is int else type(key) for key in keys}
    if len(kinds) > 1 or not kinds <= _ORDERED:
        raise ValueError("sortBy: the keys must all be of one type that has an order")
    order = sorted(range(len(items)), key=keys.__getitem__)
    return [items[at] for at in order]
