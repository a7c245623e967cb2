"""The small sentence model in the process: it sees the order of words."""

from __future__ import annotations

import asyncio
import math

import pytest

from flowrt.errors import ModelRefused
from flowrt.llm.local_minilm import DIMENSIONS, MODEL, LocalMiniLm


def closeness(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def vectors(*texts: str) -> list[list[float]]:
    return (await LocalMiniLm().embed(texts)).vectors


async def test_texts_of_like_meaning_lie_closer_than_others() -> None:
    asked, near, far = await vectors(
        "which dogs does she own", "her pets are two poodles", "the train to Lisbon is late"
    )
    assert closeness(asked, near) > closeness(asked, far) + 0.2


async def test_vectors_have_length_one_and_tell_their_model() -> None:
    embedded = await LocalMiniLm().embed(["a", "日本 🦄", "\x01", "\u200b", "a b" * 10_000])
    assert MODEL == embedded.model
    assert [DIMENSIONS] * 5 == [len(vector) for vector in embedded.vectors]
    for vector in embedded.vectors:
        assert math.isclose(1, math.hypot(*vector), rel_tol=1e-5)


async def test_the_order_of_words_makes_a_difference() -> None:
    one, other = await vectors("the dog bites the man", "the man bites the dog")
    assert closeness(one, other) < 0.995


async def test_vectors_come_in_the_order_of_their_texts() -> None:
    texts = [f"{'very ' * (number % 7)}long day number {number}" for number in range(40)]
    together = await vectors(*texts)
    (alone,) = await vectors(texts[23])
    # Integers round a little differently beside other texts: the batch has one scale.
    assert closeness(alone, together[23]) > 0.98
    assert 23 == max(range(40), key=lambda place: closeness(alone, together[place]))


async def test_first_calls_at_once_give_the_same() -> None:
    one, other = await asyncio.gather(vectors("a dog"), vectors("a dog"))
    assert one == other


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"model": "gpt"}, f"its only one is '{MODEL}'"),
        ({"dimensions": 256}, "the model gives 384"),
    ],
)
async def test_what_it_cannot_do_is_refused(options: dict[str, object], text: str) -> None:
    with pytest.raises(ModelRefused, match=text):
        await LocalMiniLm(name="vectors").embed(["a"], **options)  # type: ignore[arg-type]
