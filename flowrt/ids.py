"""Where ids come from: one place, so that tests can seed it."""

from __future__ import annotations

import random
import uuid
from contextvars import ContextVar

_seeded: ContextVar[random.Random | None] = ContextVar("ids", default=None)


def new_id() -> str:
    """A new random id of 32 hex characters."""
    source = _seeded.get()
    if source is not None:
        return f"{source.getrandbits(128):032x}"
    return uuid.uuid4().hex


def seed(value: int | None) -> None:
    """Make the ids that follow repeatable, or random again with None. For tests.

    In this context and in every task started from it: cases that run side by side have their own.
    """
    _seeded.set(None if value is None else random.Random(value))  # noqa: S311 - ids, not keys
