"""What a connector must be for an AI block to use it."""

from __future__ import annotations

from flowrt.llm.embedding import EmbeddingModel
from flowrt.llm.model import ChatModel


class ModelConnector:
    """A connector with a chat model behind it; a connector class derives from it as well."""

    @property
    def chat_model(self) -> ChatModel:
        """The model; the same object for the connector's whole life."""
        raise NotImplementedError


class EmbeddingConnector:
    """A connector that embeds texts; a connector class derives from it as well."""

    @property
    def embedding_model(self) -> EmbeddingModel:
        """The model; the same object for the connector's whole life."""
        raise NotImplementedError
