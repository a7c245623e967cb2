"""What flows and stores are tested with, offline. Public: users import it too.

Each name is imported on first use, since some need the extra `testing`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowrt.llm.scripted import ScriptedModel as ScriptedModel
    from flowrt.llm.scripted import ScriptedReply as ScriptedReply
    from flowrt.testing.messages_api import FakeMessagesAPI as FakeMessagesAPI
    from flowrt.testing.store_conformance import StoreConformance as StoreConformance

_EXPORTS = {
    "FakeMessagesAPI": "flowrt.testing.messages_api",
    "ScriptedModel": "flowrt.llm.scripted",
    "ScriptedReply": "flowrt.llm.scripted",
    "StoreConformance": "flowrt.testing.store_conformance",
}

__all__ = ["FakeMessagesAPI", "ScriptedModel", "ScriptedReply", "StoreConformance"]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)
