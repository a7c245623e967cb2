"""What was wanted against what came, as the places where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

_MOST = 10
_LONGEST = 300


class Difference(NamedTuple):
    """One place where two values differ; `wanted` and `got` are texts for the reader."""

    path: str
    wanted: str
    got: str
    note: str = ""


def differences(wanted: Any, got: Any, path: str) -> list[Difference]:
    """The places where `got` is not `wanted`, at most ten.

    Numbers compare by value: 1 is 1.0, as for every decoder of JSON; true is not 1.
    """
    found = []
    for difference in _walk(wanted, got, path):
        found.append(difference)
        if len(found) == _MOST:
            break
    return found


def _walk(wanted: Any, got: Any, path: str) -> Iterator[Difference]:
    if isinstance(wanted, dict) and isinstance(got, dict):
        yield from _tables(wanted, got, path)
    elif isinstance(wanted, list) and isinstance(got, list):
        yield from _lists(wanted, got, path)
    elif not _same(wanted, got):
        yield Difference(path, shown(wanted), shown(got), _type_only(wanted, got))


def _tables(wanted: dict[str, Any], got: dict[str, Any], path: str) -> Iterator[Difference]:
    for key, value in wanted.items():
        place = f"{path}.{key}"
        if key in got:
            yield from _walk(value, got[key], place)
        else:
            yield Difference(place, shown(value), "nothing: there is no such key")
    for key, value in got.items():
        if key not in wanted:
            yield Difference(f"{path}.{key}", "nothing: the key is not expected", shown(value))


def _lists(wanted: list[Any], got: list[Any], path: str) -> Iterator[Difference]:
    for index, (one, other) in enumerate(zip(wanted, got, strict=False)):
        yield from _walk(one, other, f"{path}[{index}]")
    if len(wanted) != len(got):
        yield Difference(path, f"{len(wanted)} items", f"{len(got)} items")


def _same(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, bool) or isinstance(got, bool):
        return wanted is got
    if isinstance(wanted, int | float) and isinstance(got, int | float):
        return wanted == got
    return type(wanted) is type(got) and bool(wanted == got)


def _type_only(wanted: Any, got: Any) -> str:
    """A hint where the two read the same and only their types differ: `"502"` and `502`."""
    if isinstance(wanted, dict | list) or isinstance(got, dict | list):
        return ""
    if _bare(wanted) != _bare(got):
        return ""
    return f"only the type differs: {kind(wanted)} is wanted, {kind(got)} came"


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def kind(value: Any) -> str:
    """The type of a JSON value, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a bool"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "a map"


def shown(value: Any) -> str:
    """A value as compact JSON, cut off where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
