"""From the model's last words to the body."""

from __future__ import annotations

import json
import re
from typing import Any

from flowrt.message import clean

_FENCE = re.compile(r"\A\s*```[A-Za-z0-9_-]*[ \t]*\r?\n(?P<inside>.*?)\r?\n?```\s*\Z", re.DOTALL)


def without_fence(text: str) -> str:
    """`text` without the code fence that surrounds the whole of it."""
    found = _FENCE.match(text)
    return found["inside"] if found else text


def fold_answer(text: str, body: Any) -> Any:
    """The new body: the JSON value the text is, else the text; an empty answer keeps `body`."""
    inside = without_fence(text).strip()
    if not inside:
        return body
    try:
        return decode_answer(inside)
    except ValueError:
        return inside


def decode_answer(text: str) -> Any:
    """The JSON value that the text is, in a code fence or bare. Raises `ValueError`."""
    try:
        return clean(json.loads(without_fence(text), parse_constant=_refuse))
    except RecursionError as error:
        raise ValueError("it nests too deep") from error


def _refuse(constant: str) -> Any:
    # NaN and Infinity are Python's, not JSON's.
    raise ValueError(f"{constant} is no JSON value")
