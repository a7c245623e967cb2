"""The embedding model in the process: like texts lie close, and nothing is left to chance."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys

import pytest

from flowrt.errors import ConnectorError, ModelRefused
from flowrt.llm.local_embedding import MAX_TEXT, MODEL, LocalEmbedding


def closeness(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def vectors(*texts: str, dimensions: int | None = None) -> list[list[float]]:
    return (await LocalEmbedding().embed(texts, dimensions=dimensions)).vectors


async def test_texts_of_like_meaning_lie_closer_than_others() -> None:
    asked, near, far = await vectors(
        "which dogs does she own", "her pets are two poodles", "the train to Lisbon is late"
    )
    assert closeness(asked, near) > closeness(asked, far) + 0.1


async def test_vectors_have_length_one_and_tell_their_model() -> None:
    embedded = await LocalEmbedding().embed(["a", "日本 🦄", "\x01", "\u200b", "a b" * 1000])
    assert MODEL == embedded.model
    assert embedded.tokens is None
    assert [256] * 5 == [len(vector) for vector in embedded.vectors]
    for vector in embedded.vectors:
        assert math.isclose(1, math.hypot(*vector), rel_tol=1e-5)


@pytest.mark.parametrize("dimensions", [64, 128])
async def test_a_shorter_vector_is_the_beginning_of_the_long_one_at_length_one(
    dimensions: int,
) -> None:
    (short,), (long,) = (
        await vectors("some text", dimensions=dimensions),
        await vectors("some text"),
    )
    assert dimensions == len(short)
    assert math.isclose(1, math.hypot(*short), rel_tol=1e-5)
    scale = math.hypot(*long[:dimensions])
    assert [value / scale for value in long[:dimensions]] == pytest.approx(short, abs=1e-6)


async def test_the_connectors_length_counts_where_a_call_asks_for_none() -> None:
    model = LocalEmbedding(dimensions=64)
    assert 64 == len((await model.embed(["a"])).vectors[0])
    assert 128 == len((await model.embed(["a"], dimensions=128)).vectors[0])


async def test_a_text_has_one_vector_whatever_it_is_embedded_with() -> None:
    (alone,) = await vectors("the same text")
    texts = [f"text number {n} " * (n % 50 + 1) for n in range(1500)]
    many = await vectors(*texts[:700], "the same text", *texts[700:])
    assert 1501 == len(many)
    assert alone == many[700]


async def test_no_texts_have_no_vectors() -> None:
    assert [] == await vectors()


async def test_of_a_long_text_the_beginning_counts_and_a_line_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "lorem ipsum " * 100_000
    long, cut = await vectors(text, text[:MAX_TEXT])
    assert long == cut
    assert 1 == capsys.readouterr().err.count("too long to embed whole")


async def test_many_at_once_share_one_model() -> None:
    results = await asyncio.gather(*(vectors(f"text {n % 3}") for n in range(50)))
    assert 3 == len({tuple(vector) for (vector,) in results})


async def test_a_cancelled_call_ends_between_two_batches() -> None:
    task = asyncio.create_task(vectors(*["some words of a text"] * 200_000))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)


@pytest.mark.parametrize(
    ("texts", "options", "text"),
    [
        (["a", ""], {}, "texts[1] is blank"),
        ([" \n"], {}, "texts[0] is blank"),
        (["a"], {"dimensions": 257}, "vectors of 257 dimensions are not possible"),
        (["a"], {"dimensions": 100}, "the model gives 64, 128 or 256"),
        (["a"], {"dimensions": 0}, "vectors of 0 dimensions"),
        (["a"], {"model": "text-embedding-3"}, f"its only one is '{MODEL}'"),
    ],
)
async def test_what_it_cannot_do_is_refused(
    texts: list[str], options: dict[str, object], text: str
) -> None:
    with pytest.raises(ModelRefused) as found:
        await LocalEmbedding(name="vectors").embed(texts, **options)  # type: ignore[arg-type]
    assert str(found.value).startswith("connector 'vectors'")
    assert text in str(found.value)


@pytest.mark.parametrize("package", ["numpy", "safetensors", "tokenizers", "wordllama"])
def test_a_missing_package_is_named_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConnectorError, match=package) as found:
        LocalEmbedding(name="vectors").check()
    assert "pip install 'flowrt[embeddings]'" in str(found.value)


def test_nothing_is_loaded_before_the_first_use_and_the_packages_own_code_never() -> None:
    code = """
import asyncio, sys
from flowrt.llm.local_embedding import LocalEmbedding
model = LocalEmbedding()
model.check()
assert not {"numpy", "tokenizers", "safetensors"} & set(sys.modules)
asyncio.run(model.embed(["a"]))
assert "numpy" in sys.modules
assert "wordllama" not in sys.modules
"""
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
