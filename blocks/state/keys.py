"""Keys and spaces of the state blocks."""

from __future__ import annotations

import hashlib

from flowrt.engine.run import Run
from flowrt.expr import Expression
from flowrt.message import Message
from flowrt.storage.objects import PREFIX
from flowrt.storage.tiers import Space

CACHED = "cache/"


def object_key(expr: Expression, message: Message, what: str) -> str:
    """The stored key for an author's key; null, empty or blank is an `ExpressionError`."""
    return PREFIX + expr.key(message, what)


def object_space(run: Run, volatile: bool) -> Space:
    """The tier's space: `user`, or `user_volatile`."""
    return run.storage.space("user_volatile" if volatile else "user")


def cache_key(expr: Expression, message: Message, block: str) -> str:
    """Where the result for an author's key is cached; null, empty or blank is an error.

    Hashed: what a cache is keyed by is often a prompt or a document, longer than a store's key.
    """
    key = expr.key(message, f"{block} key")
    return CACHED + hashlib.sha256(key.encode()).hexdigest()


def cache_space(run: Run) -> Space:
    """Where results are cached."""
    return run.storage.space("user_volatile")
