"""What every store of the record refuses, in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from flowrt.storage.agents.protocol import Person, Vector


def check_fact_owner(person: Person) -> None:
    """Raise `ValueError` for a fact about nobody, which would be everybody's."""
    if not person.user:
        raise ValueError("a fact is about somebody: the user is empty")


def check_forgotten(user: str) -> None:
    """Raise `ValueError` where "" is to be forgotten: that is nobody, not everybody."""
    if not user:
        raise ValueError("there is nobody to forget: the user is empty")


def check_vectors(vectors: Sequence[Vector]) -> None:
    """Raise `ValueError` for a vector that is no row of float32, before one of them is kept."""
    for vector in vectors:
        if not vector.data or len(vector.data) % 4:
            raise ValueError(
                f"the vector of {vector.kind} {vector.id} has {len(vector.data)} bytes, "
                "not four for each number"
            )
