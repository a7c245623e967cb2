"""`embed-local`: an embedding model inside of flowrt."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.llm.connector import EmbeddingConnector
from flowrt.llm.embedding import EmbeddingModel
from flowrt.llm.local_embedding import LocalEmbedding


class LocalEmbeddingSettings(Settings):
    """Settings of `embed-local`."""

    dimensions: Literal[64, 128, 256] = Field(
        default=256, description="Length of the vectors where a block asks for none."
    )


class LocalEmbeddingConnector(Connector[LocalEmbeddingSettings], EmbeddingConnector):
    """Embeds texts in this process, without key or network.

    A small static model for English: fast, and good at words of one meaning, but blind to their
    order. Needs `pip install 'flowrt[embeddings]'`, some 160 MB.

    ```yaml
    connectors:
      - name: vectors
        type: embed-local
    ```
    """

    Settings = LocalEmbeddingSettings

    def __init__(self, name: str, settings: LocalEmbeddingSettings) -> None:
        super().__init__(name, settings)
        self._model = LocalEmbedding(name=name, dimensions=settings.dimensions)

    @property
    def embedding_model(self) -> EmbeddingModel:
        return self._model

    async def start(self) -> None:
        self._model.check()
