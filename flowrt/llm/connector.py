"""What a connector must be for an AI block to use it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from flowrt.llm.model import ChatModel


@runtime_checkable
class ModelConnector(Protocol):
    """A connector with a chat model behind it."""

    @property
    def chat_model(self) -> ChatModel:
        """The model; the same object for the connector's whole life."""
        ...
