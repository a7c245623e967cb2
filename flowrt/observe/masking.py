"""Secrets never leave in a log line, a trace, an event or an error text.

Values known by name come first (each env value declared `secret` or named like one), then places
(`Authorization:` lines, passwords in URLs, `api_key=` in queries), then shapes (JWT, `xoxb-…`).
What surrounds a secret stays, so that the text still says what it was about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

MASK = "[redacted]"

# Shorter values would mask ordinary words; a secret of fewer characters is not one.
SHORTEST = 6

# After a colon, a word of small letters alone is prose: "API_KEY: required variable is not set".
_PLACES = re.compile(
    r"""(?ix)
    (?P<url>\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s@]+(?=@)
    | (?P<header>\b(?:authorization|proxy-authorization|cookie|set-cookie|x-api-key)\b
        ["']?\s*[:=]\s*["']?(?:bearer\s+|basic\s+)?)[^\s"',;]+(?:;[^\r\n"']*)?
    | (?P<bearer>\bbearer\s+)[a-z0-9._~+/=-]{12,}
    | (?P<pair>\b[a-z0-9_-]*(?:api[_-]?key|access[_-]key|token|password|passwd|secret)["']?\s*
        (?:=\s*["']?|:\s*["']?(?=[^\s"'&,;}]*(?-i:[^a-z\s"'&,;}]))))
        (?!\[redacted\])[^\s"'&,;}]{6,}
    | (?P<hook>\bhttps://hooks\.slack\.com/services/)[A-Za-z0-9/_-]+
    """
)
_SHAPES = re.compile(
    r"\b(?:(?:xox[a-z]|xapp)-[A-Za-z0-9-]{8,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|AKIA[A-Z0-9]{16}|eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}"
    r"|[prs]k_(?:live|test)_[A-Za-z0-9]{8,}|github_pat_[A-Za-z0-9_]{20,})\b"
    # A key that was cut off is one all the same.
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)

_known: set[str] = set()
_known_pattern: re.Pattern[str] | None = None


def add_secrets(values: Iterable[str]) -> None:
    """Mask these values from now on, wherever they appear in this process.

    Process-wide on purpose: a log line does not know which service it came from.
    """
    global _known_pattern
    _known.update(value for value in values if len(value) >= SHORTEST)
    if _known:
        longest_first = sorted(_known, key=len, reverse=True)
        _known_pattern = re.compile("|".join(re.escape(value) for value in longest_first))


def mask_text(text: str) -> str:
    """`text` with every secret replaced by ``[redacted]``."""
    if _known_pattern is not None:
        text = _known_pattern.sub(MASK, text)
    text = _PLACES.sub(_keep_place, text)
    return _SHAPES.sub(MASK, text)


def mask(value: Any) -> Any:
    """A JSON value with `mask_text` applied to every string in it; keys are kept."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, dict):
        return {key: mask(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask(item) for item in value]
    return value


def _keep_place(match: re.Match[str]) -> str:
    kept = next(text for text in match.groupdict().values() if text is not None)
    return kept + MASK
