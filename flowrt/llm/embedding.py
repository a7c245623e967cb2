"""What an embedding model is: texts in, one vector for each out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors in the order of their texts, all of one length.

    `model` is the model's own name, as stored beside vectors so that two are never compared.
    `tokens` is what the provider billed, None where it reported nothing.
    """

    vectors: list[list[float]]
    model: str
    tokens: int | None = None


class EmbeddingModel(Protocol):
    """An embedding model behind a connector.

    `embed` splits what its provider would not take in one request. `model` and `dimensions` None
    leave the choice to the connector. Raises as `ChatModel.complete` does: `ModelUnavailable`
    after bounded retries, `ModelRefused` for a request the provider refuses for good.
    """

    name: str
    provider: str

    async def embed(
        self, texts: Sequence[str], *, model: str | None = None, dimensions: int | None = None
    ) -> Embeddings: ...
