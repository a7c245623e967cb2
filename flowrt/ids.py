"""Where ids come from: one place, so that tests can seed it."""

from __future__ import annotations

import random
import uuid

_seeded: random.Random | None = None


def new_id() -> str:
    """A new random id of 32 hex characters."""
    if _seeded is not None:
        return f"{_seeded.getrandbits(128):032x}"
    return uuid.uuid4().hex


def seed(value: int | None) -> None:
    """Make the ids that follow repeatable, or random again with None. For tests."""
    global _seeded
    _seeded = None if value is None else random.Random(value)  # noqa: S311 - ids, not keys
