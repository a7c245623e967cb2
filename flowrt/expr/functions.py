"""The functions of the dialect (3.3, 3.4) that the CEL runtime does not bring."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import uuid
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode

from flowrt.expr.values import duration_text, json_value, timestamp_text
from flowrt.message import clean, clean_text


def to_json(value: Any) -> str:
    """Compact JSON."""
    return json.dumps(json_value(value), ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> Any:
    """The decoded value. NaN and Infinity are not JSON."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"fromJson: {constant} is not JSON")

    try:
        return clean(_bounded(json.loads(text, parse_constant=refuse)))
    except json.JSONDecodeError as error:
        raise ValueError(f"fromJson: not valid JSON: {error}") from error


def _bounded(value: Any) -> Any:
    """Integers that CEL cannot hold become doubles, as everywhere else."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    if isinstance(value, list):
        return [_bounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _bounded(item) for key, item in value.items()}
    return value


def to_form_data(fields: dict[str, Any]) -> str:
    """URL-encoded, keys sorted; a list repeats its key."""
    pairs = []
    for key in sorted(fields):
        values = fields[key] if isinstance(fields[key], list) else [fields[key]]
        pairs += [(key, string_of(value)) for value in values]
    return urlencode(pairs)


def from_form_data(text: str) -> dict[str, Any]:
    """The fields; a repeated key becomes a list."""
    parsed = parse_qs(text, keep_blank_values=True)
    return {
        clean_text(key): clean(values) if len(values) > 1 else clean_text(values[0])
        for key, values in parsed.items()
    }


def to_yaml(value: Any) -> str:
    """YAML in which every string that another reader could take for something else is quoted."""
    import yaml

    text: str = yaml.safe_dump(
        json_value(value), allow_unicode=True, sort_keys=False, default_flow_style=False
    )
    return text.removesuffix("...\n")


def from_yaml(text: str) -> Any:
    """The decoded value, under YAML 1.2: `yes`, `on` and dates are strings."""
    from flowrt.expr.yaml12 import load

    return clean(_bounded(load(text)))


def to_env(values: dict[str, Any]) -> str:
    """`KEY=VALUE` lines, sorted. Nested values are an error."""
    lines = []
    for key in sorted(values):
        if isinstance(values[key], list | dict):
            raise ValueError(f"toEnv: {key!r} is nested; only flat maps can be written")
        text = string_of(values[key])
        lines.append(f'{key}="{text}"' if text != text.strip() or "#" in text else f"{key}={text}")
    return "\n".join(lines) + ("\n" if lines else "")


def from_env(text: str) -> dict[str, str]:
    """The pairs of an env file (dialect 1.3)."""
    values: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.removeprefix("export ").partition("=")
        if not equals:
            raise ValueError(f"fromEnv: line {number} has no `=`: {line!r}")
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        values[name.strip()] = clean_text(value)
    return values


def _octets(value: str | bytes | bytearray) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def hmac_sha256(key: str | bytes, data: str | bytes) -> bytes:
    return hmac.new(_octets(key), _octets(data), hashlib.sha256).digest()


def hmac_sha1(key: str | bytes, data: str | bytes) -> bytes:
    return hmac.new(_octets(key), _octets(data), hashlib.sha1).digest()


def secure_compare(one: str | bytes, other: str | bytes) -> bool:
    return hmac.compare_digest(_octets(one), _octets(other))


def hex_encode(data: bytes) -> str:
    return bytes(data).hex()


def new_uuid() -> str:
    return str(uuid.uuid4())


def string_of(value: Any) -> str:
    """CEL's `string()`. Null, maps and lists are errors: a thread called "null" pools people."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _double_text(value)
    if isinstance(value, bytes | bytearray):
        return clean_text(bytes(value).decode())
    if isinstance(value, datetime):
        return timestamp_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    raise ValueError(f"string() takes no {_type_name(value)}")


def _type_name(value: Any) -> str:
    return "null" if value is None else {"list": "list", "dict": "map"}[type(value).__name__]


def _double_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def keys_of(value: list[Any] | dict[Any, Any]) -> list[Any]:
    """The indexes of a list, the keys of a map: what a two-variable comprehension walks."""
    return list(range(len(value))) if isinstance(value, list) else list(value)


def zip_map(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    return dict(zip(keys, values, strict=True))


def merge_maps(entries: list[Any]) -> dict[Any, Any]:
    merged: dict[Any, Any] = {}
    for entry in entries:
        for key, value in entry.items():
            if key in merged:
                raise ValueError(f"transformMapEntry: the key {key!r} appears twice")
            merged[key] = value
    return merged


def sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    _comparable(keys, "sortBy")
    order = sorted(range(len(items)), key=lambda index: keys[index])
    return [items[index] for index in order]


def sort(items: list[Any]) -> list[Any]:
    _comparable(items, "sort")
    return sorted(items)


def _comparable(items: list[Any], function: str) -> None:
    kinds = {float if type(item) is int else type(item) for item in items}
    if len(kinds) > 1 or kinds & {list, dict, type(None)}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"{function}: elements must be of one comparable type, found {names}")


def distinct(items: list[Any]) -> list[Any]:
    seen: list[Any] = []
    for item in items:
        if not any(_same(item, other) for other in seen):
            seen.append(item)
    return seen


def _same(one: Any, other: Any) -> bool:
    # True is 1 in Python and not in CEL.
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise ValueError("flatten: the depth cannot be negative")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            flat += flatten(item, depth - 1)
        else:
            flat.append(item)
    return flat


def slice_list(items: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise ValueError(f"slice: {start} to {end} is outside a list of {len(items)}")
    return items[start:end]


def reverse(value: list[Any] | str) -> list[Any] | str:
    return value[::-1]


def list_range(count: int) -> list[int]:
    if count > 1_000_000:
        raise ValueError(f"lists.range({count}): at most 1,000,000")
    return list(range(count))


def sets_contains(items: list[Any], part: list[Any]) -> bool:
    return all(any(_same(item, other) for other in items) for item in part)


def sets_equivalent(one: list[Any], other: list[Any]) -> bool:
    return sets_contains(one, other) and sets_contains(other, one)


def sets_intersects(one: list[Any], other: list[Any]) -> bool:
    return any(_same(item, mate) for item in one for mate in other)
