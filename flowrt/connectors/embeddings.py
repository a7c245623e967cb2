"""Which connector gives memory its vectors: the one that `FLOWRT_EMBEDDINGS` names."""

from __future__ import annotations

from collections.abc import Mapping

from flowrt.config.faults import nearest
from flowrt.engine.connector import AnyConnector
from flowrt.errors import CallError
from flowrt.llm.connector import EmbeddingConnector
from flowrt.llm.embedding import EmbeddingModel

VARIABLE = "FLOWRT_EMBEDDINGS"

_LOCAL = "embed-local"


def memory_embeddings(
    connectors: dict[str, AnyConnector], environ: Mapping[str, str]
) -> EmbeddingModel | None:
    """The model that memory is searched with by meaning; None where none is named.

    A connector of the service by its name, or ``embed-local`` and ``embed-local:minilm`` without
    one, which is then added to `connectors`. Raises `CallError` for anything else.
    """
    name = environ.get(VARIABLE, "").strip()
    if not name:
        return None
    if name not in connectors:
        connectors[name] = _own(name, list(connectors))
    connector = connectors[name]
    if not isinstance(connector, EmbeddingConnector):
        raise CallError(f"{VARIABLE}: the connector {name!r} does not embed; name one that does")
    return connector.embedding_model


def _own(name: str, known: list[str]) -> AnyConnector:
    kind, _, model = name.partition(":")
    if kind == _LOCAL:
        from flowrt.connectors.embed_local import (
            MODELS,
            LocalEmbeddingConnector,
            LocalEmbeddingSettings,
        )

        if (model or "wordllama") in MODELS:
            settings = LocalEmbeddingSettings.model_validate({"model": model or "wordllama"})
            return LocalEmbeddingConnector(name, settings)
    close = nearest(name, [*known, _LOCAL, f"{_LOCAL}:minilm"])
    way_out = f"did you mean {close!r}?" if close else f"name a connector, or {_LOCAL}"
    raise CallError(f"{VARIABLE} names {name!r}, which the service does not have; {way_out}")
