"""flowrt: a runtime for declarative YAML flows whose `ai-agent` block remembers.

::

    from flowrt import Service

    async with Service.load("chat.yaml") as service:
        result = await service.invoke("chat", {"threadId": "t1", "message": "Hello"})

The names here are imported on first use: ``import flowrt`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowrt.message import Message as Message
    from flowrt.message import Outcome as Outcome
    from flowrt.service import Result as Result
    from flowrt.service import Service as Service

_EXPORTS = {
    "Message": "flowrt.message",
    "Outcome": "flowrt.message",
    "Result": "flowrt.service",
    "Service": "flowrt.service",
}

__all__ = ["Message", "Outcome", "Result", "Service"]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)
