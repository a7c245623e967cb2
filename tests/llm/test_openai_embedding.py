"""Embeddings: every text its vector, however they travel."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest

from flowrt.errors import ModelRefused, ModelUnavailable
from flowrt.llm import openai_embedding
from flowrt.llm.failures import BrokenReply
from flowrt.testing import FakeCompletionsAPI, Gate
from tests.llm.anthropic_calls import Waits
from tests.llm.openai_calls import embedding


def near(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


async def test_each_text_gets_its_vector_in_order(chat: FakeCompletionsAPI) -> None:
    texts = ["the cat sat", "the cat sat down", "quarterly figures"]
    async with embedding(chat) as embedder:
        found = await embedder.embed(texts)
        alone = [(await embedder.embed([text])).vectors[0] for text in texts]

    assert alone == found.vectors
    assert "text-embedding-3-small" == found.model
    assert found.tokens is not None
    assert all(math.isclose(1, near(v, v), abs_tol=1e-5) for v in found.vectors)
    cat, down, figures = found.vectors
    assert near(cat, down) > 0.5 > near(cat, figures)


async def test_model_and_dimensions_are_passed_on(chat: FakeCompletionsAPI) -> None:
    async with embedding(chat) as embedder:
        found = await embedder.embed(["a"], model="other", dimensions=64)

    assert ("other", 64) == (found.model, len(found.vectors[0]))
    assert {"model": "other", "input": ["a"], "dimensions": 64, "encoding_format": "base64"} == (
        chat.embeddings[0].body
    )


async def test_no_texts_are_no_request(chat: FakeCompletionsAPI) -> None:
    async with embedding(chat) as embedder:
        found = await embedder.embed([])

    assert ([], None) == (found.vectors, found.tokens)
    assert [] == chat.embeddings


async def test_more_texts_than_a_request_takes_are_sent_in_several(
    chat: FakeCompletionsAPI,
) -> None:
    texts = [f"w{n}" for n in range(2048 * 2 + 1)]
    async with embedding(chat) as embedder:
        found = await embedder.embed(texts, dimensions=8)

    assert len(texts) == len(found.vectors)
    assert [2048, 2048, 1] == [len(call.body["input"]) for call in chat.embeddings]
    assert [] == chat.refused


async def test_long_texts_are_sent_in_several_requests(chat: FakeCompletionsAPI) -> None:
    async with embedding(chat) as embedder:
        found = await embedder.embed(["long " * 20_000] * 7, dimensions=8)

    assert 7 == len(found.vectors)
    assert [3, 3, 1] == [len(call.body["input"]) for call in chat.embeddings]
    assert [] == chat.refused


async def test_a_passing_failure_is_tried_again(chat: FakeCompletionsAPI, clock: Waits) -> None:
    chat.add_embeddings({"error": 429, "headers": {"retry-after": "3"}}, {"disconnect": 0})

    async with embedding(chat, clock) as embedder:
        found = await embedder.embed(["a"], dimensions=8)

    assert 1 == len(found.vectors)
    assert 3 == clock.slept[0]
    assert 3 == len(chat.embeddings)


async def test_a_refusal_names_the_connector_and_the_address(chat: FakeCompletionsAPI) -> None:
    with pytest.raises(ModelRefused) as caught:
        async with embedding(chat) as embedder:
            await embedder.embed(["a", ""])

    expected = f"connector 'gpt': llm-openai embed: Post \"{chat.base_url}/embeddings\": 400 "
    assert str(caught.value).startswith(expected)
    assert 1 == len(chat.embeddings)


async def test_a_server_that_is_not_there_is_unavailable(clock: Waits) -> None:
    with pytest.raises(ModelUnavailable, match="3 attempts"):
        async with embedding("http://127.0.0.1:9", clock) as embedder:
            await embedder.embed(["a"])


async def test_a_cancelled_request_hangs_up(chat: FakeCompletionsAPI) -> None:
    gate = Gate()
    chat.add_embeddings({"text": "", "hold": gate})
    async with embedding(chat) as embedder:
        call = asyncio.ensure_future(embedder.embed(["a"]))
        await gate.reached()

        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        await chat.embeddings[0].abandoned()


def read(*data: Any, **more: Any) -> Any:
    return openai_embedding._read({"data": list(data), **more}, len(data))


def test_vectors_are_put_in_the_order_of_their_texts_and_may_be_lists() -> None:
    found = read({"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]})

    assert ([[1.0], [2.0]], None) == found


def test_vectors_without_an_index_are_in_order() -> None:
    assert [[1.0], [2.0]] == read({"embedding": [1]}, {"embedding": [2]})[0]


@pytest.mark.parametrize(
    "data",
    [
        [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [2]}],
        [{"index": 1, "embedding": [1]}],
        [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [2, 3]}],
        [{"index": 0, "embedding": "AAA="}],
        [{"index": 0, "embedding": None}],
        [{"index": 0}],
        [3],
    ],
)
def test_what_is_no_vector_for_each_text_is_broken(data: list[Any]) -> None:
    with pytest.raises(BrokenReply):
        openai_embedding._read({"data": data}, len(data))


@pytest.mark.parametrize("answer", [None, 3, [], {}, {"data": None}])
def test_what_is_no_answer_is_broken(answer: Any) -> None:
    with pytest.raises(BrokenReply):
        openai_embedding._read(json.loads(json.dumps(answer)), 1)
