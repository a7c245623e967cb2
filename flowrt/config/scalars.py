"""What a bare YAML scalar reads as: the YAML 1.2 core schema, and one rule more.

`on`, `yes`, `no`, ``1:30`` and ``2024-01-02`` are text. So is a number with leading zeros:
``02142`` is a postal code far more often than it is 2142.
"""

from __future__ import annotations

import math
import re

from flowrt.config.nodes import Scalar, cut

_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_NUMBER = re.compile(
    r"""(?x)
    (?P<int>  [-+]? (?: 0 | [1-9][0-9]* ) )
    | (?P<radix> 0o[0-7]+ | 0x[0-9a-fA-F]+ )
    | (?P<float> [-+]? (?: (?: 0 | [1-9][0-9]* ) (?: \.[0-9]* )? | \.[0-9]+ )
                       (?: [eE][-+]?[0-9]+ )? )
    | (?P<none> [-+]? \.(?:inf|Inf|INF) | \.(?:nan|NaN|NAN) )
    """
)
_STARTS = frozenset("+-.0123456789")
# Python refuses to read longer ones (and would take quadratic time for them).
_MOST_DIGITS = 4000


class NotJson(ValueError):
    """The scalar is a number that JSON cannot hold."""


def read_scalar(text: str) -> Scalar:
    """The value of a bare scalar. Raises `NotJson` for infinities and numbers beyond reach."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _STARTS:
        return text
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    if len(text) > _MOST_DIGITS:
        raise NotJson(f"a number of {len(text)} characters is too long")
    if match["int"]:
        return int(text)
    if match["radix"]:
        return int(text, 0)
    if match["none"]:
        raise NotJson(f"{cut(text)} is not a number JSON can hold")
    number = float(text)
    if math.isinf(number):
        raise NotJson(f"{cut(text)} is beyond the largest number JSON can hold")
    return number
