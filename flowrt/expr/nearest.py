"""The known name that was most likely meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to `name`, the first of equals; another case is no distance."""
    folded = {each.casefold(): each for each in reversed(list(known))}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.65)
    return folded[close[0]] if close else None
