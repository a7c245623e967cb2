"""Paths of requests: always below the base URL, whatever data they were made of."""

from __future__ import annotations

import re
from urllib.parse import unquote

_ABSOLUTE = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]{2}|\s*[A-Za-z][A-Za-z0-9+.-]*:[/\\]")
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f#]")
_MOST_DECODINGS = 8


def path_problem(path: str) -> str:
    """Why a path cannot be asked for; empty where it can. A query may follow it after `?`."""
    if _ABSOLUTE.match(path):
        return f"{_shown(path)} is an absolute URL; the connector's baseURL says where requests go"
    if _UNUSABLE.search(path):
        return f"{_shown(path)} has a `#` or a control character; write %23 for `#`"
    if climbs(path):
        return f"{_shown(path)} has a `..` segment"
    return ""


def climbs(path: str) -> bool:
    """Whether a segment is `..`, however often it is encoded and whatever a server takes as `/`."""
    place = path.partition("?")[0]
    for _ in range(_MOST_DECODINGS):
        # Some servers cut `;parameters` off a segment before they look at it.
        if any(segment.partition(";")[0].strip() == ".." for segment in re.split(r"[/\\]", place)):
            return True
        decoded = unquote(place)
        if decoded == place:
            return False
        place = decoded
    return True


def is_below(path: str, prefix: str) -> bool:
    """Whether `path` is `prefix` or below it, segment by segment: `/a/bc` is not below `/a/b`."""
    wanted, found = _segments(prefix), _segments(path)
    return found[: len(wanted)] == wanted


def joined(base: str, path: str) -> str:
    """The URL of a path: below the base, also where it begins with `/`."""
    if not path or path.startswith("?"):
        return base + path
    return f"{base}/{path.lstrip('/')}"


def bare(path: str) -> str:
    """A path as errors show it: without its query, which may hold a key."""
    return "/" + path.partition("?")[0].lstrip("/")


def _segments(path: str) -> list[str]:
    # Split before decoding: an encoded slash does not make two segments out of one.
    place = path.partition("?")[0].strip("/")
    return [unquote(segment) for segment in place.split("/")] if place else []


def _shown(path: str) -> str:
    place = path.partition("?")[0]
    return repr(place if len(place) <= 100 else place[:99] + "…")
