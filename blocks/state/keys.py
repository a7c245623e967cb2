"""Keys and spaces of the object blocks."""

from __future__ import annotations

from flowrt.engine.run import Run
from flowrt.expr import Expression
from flowrt.message import Message
from flowrt.storage.objects import PREFIX
from flowrt.storage.tiers import Space


def object_key(expr: Expression, message: Message, block: str) -> str:
    """The stored key for an author's key; null, empty or blank is an `ExpressionError`."""
    return PREFIX + expr.key(message, f"{block} key")


def object_space(run: Run, volatile: bool) -> Space:
    """The tier's space: `user`, or `user_volatile`."""
    return run.storage.space("user_volatile" if volatile else "user")
