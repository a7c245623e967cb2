"""What users and third parties test with. Each name is imported on its first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowrt.testing.agent_memory_conformance import (
        AgentMemoryConformance as AgentMemoryConformance,
    )
    from flowrt.testing.completions_api import FakeCompletionsAPI as FakeCompletionsAPI
    from flowrt.testing.messages_api import FakeMessagesAPI as FakeMessagesAPI
    from flowrt.testing.replies import FakeReply as FakeReply
    from flowrt.testing.replies import Gate as Gate
    from flowrt.testing.slack_api import FakeSlackAPI as FakeSlackAPI
    from flowrt.testing.slack_events import SlackEvents as SlackEvents
    from flowrt.testing.store_conformance import StoreConformance as StoreConformance

_EXPORTS = {
    "AgentMemoryConformance": "flowrt.testing.agent_memory_conformance",
    "FakeCompletionsAPI": "flowrt.testing.completions_api",
    "FakeMessagesAPI": "flowrt.testing.messages_api",
    "FakeReply": "flowrt.testing.replies",
    "Gate": "flowrt.testing.replies",
    "FakeSlackAPI": "flowrt.testing.slack_api",
    "SlackEvents": "flowrt.testing.slack_events",
    "StoreConformance": "flowrt.testing.store_conformance",
}

__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)
