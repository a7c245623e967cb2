"""Addresses with names in them, such as `order://{id}`."""

from __future__ import annotations

import re
from urllib.parse import unquote

_NAME = re.compile(r"\{([^{}]*)\}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class UriPattern:
    """A `uriTemplate`. Raises `ValueError` for one that cannot be matched."""

    def __init__(self, template: str) -> None:
        names = _NAME.findall(template)
        for name in names:
            if not _IDENTIFIER.fullmatch(name):
                raise ValueError(f"uriTemplate: {{{name}}} is no name of letters, digits and _")
        if not names or len(set(names)) < len(names):
            raise ValueError("uriTemplate needs a {name}, and each name once; else write uri")
        pieces = _NAME.split(template)
        if "{" in "".join(pieces[::2]) or "}" in "".join(pieces[::2]):
            raise ValueError("uriTemplate: a brace is not closed, or not opened")
        self._pattern = re.compile(
            "".join(
                rf"(?P<{piece}>[^/?#]+)" if index % 2 else re.escape(piece)
                for index, piece in enumerate(pieces)
            )
        )

    def match(self, uri: str) -> dict[str, str] | None:
        """What stands in the places of the names, decoded; None for another address."""
        found = self._pattern.fullmatch(uri)
        return None if found is None else {k: unquote(v) for k, v in found.groupdict().items()}
