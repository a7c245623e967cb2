"""Regular expressions for `regex.*`: RE2 through google-re2, the extra `regex`.

Python's own `re` backtracks: one pattern of a flow could hold up every other run (FB-89).
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from typing import Any


def available() -> bool:
    """Whether google-re2 is installed."""
    return importlib.util.find_spec("re2") is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import re2

    try:
        return re2.compile(pattern)
    except re2.error as error:
        raise ValueError(f"invalid regular expression {pattern!r}: {error}") from error


def _one_group(pattern: str) -> Any:
    compiled = _compiled(pattern)
    if compiled.groups > 1:
        raise ValueError(
            f"{pattern!r} has {compiled.groups} capture groups; at most one is allowed"
        )
    return compiled


def extract(text: str, pattern: str) -> list[str]:
    """The first match, or its capture group, in a list of one; an empty list where none is."""
    compiled = _one_group(pattern)
    match = compiled.search(text)
    return [] if match is None else [match.group(compiled.groups) or ""]


def extract_all(text: str, pattern: str) -> list[str]:
    """Every match, or its capture group."""
    compiled = _one_group(pattern)
    return [match.group(compiled.groups) or "" for match in compiled.finditer(text)]


def replace(text: str, pattern: str, by: str, count: int = -1) -> str:
    """Matches replaced by `by`, in which ``\\1`` is a group; `count` < 0 means all, 0 none."""
    if count == 0:
        return text
    replaced: str = _compiled(pattern).sub(by, text, max(0, count))
    return replaced
