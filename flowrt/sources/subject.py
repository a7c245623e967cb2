"""The subject a source listens to."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from flowrt.engine.transport import SYSTEM


def _of_this_service(subject: str) -> str:
    if subject.startswith(SYSTEM):
        raise PydanticCustomError(
            "subject",
            "a subject that starts with {system} leaves the service: flows can publish to it, and "
            "not listen",
            {"system": SYSTEM},
        )
    return subject


Subject = Annotated[str, Field(min_length=1), AfterValidator(_of_this_service)]
"""A subject of this service, written as it is: a source has no message to compute it from."""
