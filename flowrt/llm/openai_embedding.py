"""OpenAI's Embeddings API, and whatever else speaks it, as an `EmbeddingModel`."""

from __future__ import annotations

import base64
import json
import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from flowrt.llm.embedding import Embeddings
from flowrt.llm.failures import BrokenReply
from flowrt.llm.openai_client import OpenAIClient
from flowrt.llm.retry import with_retries

if TYPE_CHECKING:
    import openai

PATH = "/embeddings"

MOST_TEXTS = 2048
"""Texts of one request; the API's own limit."""

MOST_CHARACTERS = 300_000
"""Characters of one request: the API takes 300,000 tokens, and few characters are more than one."""


class OpenAIEmbedding:
    """An embedding model behind `client`, which it does not own. `model` is the default one."""

    def __init__(self, client: OpenAIClient, model: str) -> None:
        self.name = client.access.name
        self.provider = client.access.provider
        self._client = client
        self._model = model
        self._failures = client.failures("embed", PATH)

    async def __aenter__(self) -> Self:
        await self._client.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def embed(
        self, texts: Sequence[str], *, model: str | None = None, dimensions: int | None = None
    ) -> Embeddings:
        """One vector for each text; see `EmbeddingModel`. Requests follow one another."""
        wanted = model or self._model
        vectors: list[list[float]] = []
        tokens: int | None = None
        sdk = await self._client.sdk()
        for batch in _batches(texts):
            # As base64 a vector is a quarter as long and decoded in a tenth of the time.
            body: dict[str, Any] = {"model": wanted, "input": batch, "encoding_format": "base64"}
            if dimensions is not None:
                body["dimensions"] = dimensions
            more, billed = await self._ask(sdk, body)
            vectors += more
            if billed is not None:
                tokens = (tokens or 0) + billed
        return Embeddings(vectors, wanted, tokens)

    async def _ask(
        self, sdk: openai.AsyncOpenAI, body: dict[str, Any]
    ) -> tuple[list[list[float]], int | None]:
        async def attempt() -> tuple[list[list[float]], int | None]:
            async with self._client.post(sdk, PATH, body, self._failures) as response:
                try:
                    return _read(json.loads(response.content), len(body["input"]))
                except (ValueError, BrokenReply) as error:
                    raise self._failures.of_reply(error) from error

        access = self._client.access
        return await with_retries(
            attempt,
            retries=access.max_retries,
            patience=access.timeout,
            clock=access.clock,
            name=self.name,
        )


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in their order, in lists that one request can carry."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        if batch and (len(batch) == MOST_TEXTS or characters + len(text) > MOST_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch


def _read(answer: Any, count: int) -> tuple[list[list[float]], int | None]:
    """The vectors in the order of their texts, and the tokens billed. Raises `BrokenReply`."""
    try:
        # Servers that give no index give the vectors in order.
        placed = [
            (item.get("index", at), item["embedding"]) for at, item in enumerate(answer["data"])
        ]
        placed.sort(key=lambda pair: pair[0])
        vectors = [_vector(embedding) for _, embedding in placed]
        places = [place for place, _ in placed]
        tokens = (answer.get("usage") or {}).get("prompt_tokens")
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BrokenReply(f"no vectors in {json.dumps(answer)[:200]}") from error
    if places != list(range(count)):
        raise BrokenReply(f"{count} texts were sent and vectors {places[:20]} came back")
    if len({len(vector) for vector in vectors}) > 1:
        raise BrokenReply("the vectors are not of one length")
    return vectors, tokens if tokens is None else int(tokens)


def _vector(value: Any) -> list[float]:
    """A vector from base64, or from the list that servers send which do not know better."""
    if not isinstance(value, str):
        return [float(number) for number in value]
    numbers = array("f")
    numbers.frombytes(base64.b64decode(value))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
