"""What a connector must be for an AI block to use it."""

from __future__ import annotations

from urllib.parse import urlsplit

from flowrt.llm.embedding import EmbeddingModel
from flowrt.llm.model import ChatModel


class ModelConnector:
    """A connector with a chat model behind it; a connector class derives from it as well."""

    @property
    def chat_model(self) -> ChatModel:
        """The model; the same object for the connector's whole life."""
        raise NotImplementedError

    @property
    def media(self) -> bool:
        """Whether requests may hold pictures and documents."""
        return False

    @property
    def local(self) -> bool:
        """Whether its calls stay on this machine. A suite plays every other connector."""
        return False


class EmbeddingConnector:
    """A connector that embeds texts; a connector class derives from it as well."""

    @property
    def embedding_model(self) -> EmbeddingModel:
        """The model; the same object for the connector's whole life."""
        raise NotImplementedError

    @property
    def local(self) -> bool:
        """Whether its calls stay on this machine. A suite plays every other connector."""
        return False


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
