"""What users and third parties test with. Each name is imported on its first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowrt.testing.messages_api import FakeMessagesAPI as FakeMessagesAPI
    from flowrt.testing.messages_script import FakeReply as FakeReply
    from flowrt.testing.messages_script import Gate as Gate
    from flowrt.testing.store_conformance import StoreConformance as StoreConformance

_EXPORTS = {
    "FakeMessagesAPI": "flowrt.testing.messages_api",
    "FakeReply": "flowrt.testing.messages_script",
    "Gate": "flowrt.testing.messages_script",
    "StoreConformance": "flowrt.testing.store_conformance",
}

__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)
