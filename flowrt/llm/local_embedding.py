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
    model = MODEL
    lengths: tuple[int, ...] = DIMENSIONS
    batch = _BATCH_TEXTS
    extra = "embeddings"
    packages: tuple[str, ...] = _PACKAGES
    files: tuple[tuple[str, str], ...] = (("wordllama", _WEIGHTS), ("wordllama", _TOKENIZER))

    def __init__(self, *, name: str = "embed-local", dimensions: int | None = None) -> None:
        self.name = name
        self._dimensions = self.lengths[-1] if dimensions is None else dimensions

    def check(self) -> None:
        """Make sure that the model is installed, without loading it. Raises `ConnectorError`."""
        missing = [package for package in self.packages if find_spec(package) is None]
        if missing:
            raise ConnectorError(
                f"connector {self.name!r}: the package {missing[0]!r} is not installed; "
                f"pip install 'flowrt[{self.extra}]'"
            )
        for package, path in self.files:
            if not (folder(package) / path).is_file():
                raise ConnectorError(
                    f"connector {self.name!r}: {folder(package) / path} is missing: the installed "
                    f"{package} is of another version; pip install 'flowrt[{self.extra}]'"
                )

    async def embed(
        self, texts: Sequence[str], *, model: str | None = None, dimensions: int | None = None
    ) -> Embeddings:
        """The vectors of the texts.

        Raises `ModelRefused` for another model than its own, a length that is none of `lengths` and
        a blank text, which has no direction.
        """
        length = self._dimensions if dimensions is None else dimensions
        self._refuse(texts, model, length)
        vectors: list[list[float]] = []
        for batch in _batches([text[:MAX_TEXT] for text in texts], self.batch):
            # One thread call a batch: between two of them a cancelled run ends.
            vectors += await asyncio.to_thread(self._embed, batch, length)
        return Embeddings(vectors, self.model)

    def _refuse(self, texts: Sequence[str], model: str | None, length: int) -> None:
        if model not in (None, self.model):
            raise ModelRefused(
                f"connector {self.name!r} has no model {model!r}; its only one is {self.model!r}"
            )
        if length not in self.lengths:
            raise ModelRefused(
                f"connector {self.name!r}: vectors of {length} dimensions are not possible; "
                f"the model gives {listed(self.lengths)}"
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

    def _embed(self, texts: list[str], length: int) -> list[list[float]]:
        import numpy as np

        tokenizer, weights = _load()
        encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        # The sum has the mean's direction, and only that is kept.
        sums = np.stack([weights.take(tokens.ids, axis=0).sum(axis=0) for tokens in encoded])
        rows = sums[:, :length]
        vectors: list[list[float]] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).tolist()
        return vectors


def _batches(texts: list[str], most: int) -> list[list[str]]:
    batches: list[list[str]] = []
    room = 0
    for text in texts:
        if not batches or len(batches[-1]) == most or len(text) > room:
            batches.append([])
            room = _BATCH_CHARACTERS
        batches[-1].append(text)
        room -= len(text)
    return batches


def listed(lengths: Sequence[int]) -> str:
    """Lengths of vectors for a sentence: `64, 128 or 256`."""
    *most, last = map(str, lengths)
    return f"{', '.join(most)} or {last}" if most else last


def folder(package: str) -> Path:
    """Where a package lies, without importing it."""
    spec = find_spec(package)
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

    tokenizer = Tokenizer.from_file(str(folder("wordllama") / _TOKENIZER))
    weights = load_file(folder("wordllama") / _WEIGHTS)["embedding.weight"]
    return tokenizer, weights.astype(np.float32)
