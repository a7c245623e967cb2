"""`ai-embed`: texts become vectors in a variable, and the body stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from flowrt.engine import registry
from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.errors import ConfigError, ModelRefused
from flowrt.llm.connector import EmbeddingConnector
from flowrt.llm.embedding import EmbeddingModel, Embeddings
from tests.blocks.ai.asking import Asked, document, send
from tests.services import load


class Letters:
    """An embedding model of two dimensions: how long a text is, and how many spaces it has."""

    name, provider = "letters", "TEST"

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], str | None, int | None]] = []

    async def embed(
        self, texts: Sequence[str], *, model: str | None = None, dimensions: int | None = None
    ) -> Embeddings:
        self.asked.append((list(texts), model, dimensions))
        if "refuse" in texts:
            raise ModelRefused("no such model", status=404)
        return Embeddings([[float(len(t)), float(t.count(" "))] for t in texts], "letters-1", 7)


@pytest.fixture
def letters() -> Iterator[Letters]:
    """The model behind the connector type `letters`."""
    model = Letters()

    class LettersConnector(Connector[Settings], EmbeddingConnector):
        Settings = Settings

        @property
        def embedding_model(self) -> EmbeddingModel:
            return model

    registry.connectors.add("letters", LettersConnector)
    return model


def embed(text: str = "body", **settings: Any) -> dict[str, Any]:
    return {"type": "ai-embed", "name": "vec", "connector": "vectors", "text": text} | settings


def service(block: dict[str, Any], kind: str = "letters", **settings: Any) -> dict[str, Any]:
    whole = document([block], {"text": "x"})
    whole["connectors"].append({"name": "vectors", "type": kind, "settings": settings})
    return whole


async def ask(folder: Path, block: dict[str, Any], body: Any) -> Asked:
    async with load(folder, service(block)) as running:
        return await send(running, body)


async def test_a_text_becomes_a_vector_and_the_body_stays(letters: Letters, tmp_path: Path) -> None:
    asked = await ask(tmp_path, embed("body.q"), {"q": "to be"})
    assert [5.0, 1.0] == asked.vars["embedding"]
    assert {"q": "to be"} == asked.body


async def test_a_list_becomes_vectors_in_its_order(letters: Letters, tmp_path: Path) -> None:
    block = embed(resultVar="vs", model="letters-2", dimensions=2)
    asked = await ask(tmp_path, block, ["abc", "a"])
    assert [[3.0, 0.0], [1.0, 0.0]] == asked.vars["vs"]
    assert [(["abc", "a"], "letters-2", 2)] == letters.asked


async def test_a_list_of_one_stays_a_list(letters: Letters, tmp_path: Path) -> None:
    assert [[1.0, 0.0]] == (await ask(tmp_path, embed(), ["a"])).vars["embedding"]


async def test_an_empty_list_asks_nobody(letters: Letters, tmp_path: Path) -> None:
    asked = await ask(tmp_path, embed(), [])
    assert [] == asked.vars["embedding"]
    assert [] == letters.asked
    assert [] == [record for record in asked.records if record["kind"] == "llm.embed"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (7, "ai-embed: text is a int; give a text or a list of texts"),
        (None, "ai-embed: text is null; give a text or a list of texts"),
        ({"a": "b"}, "ai-embed: text is a dict; give a text or a list of texts"),
        (["a", 1], "ai-embed: text[1] is a int; give a text or a list of texts"),
        (["a", ["b"]], "ai-embed: text[1] is a list; give a text or a list of texts"),
        ("", "ai-embed: text is blank: there is nothing to embed"),
        (["a", " \n"], "ai-embed: text[1] is blank: there is nothing to embed"),
    ],
)
async def test_what_is_no_text_is_an_error_without_a_call(
    letters: Letters, tmp_path: Path, body: Any, text: str
) -> None:
    asked = await ask(tmp_path, embed(), body)
    assert f'block "vec": {text}' == asked.error
    assert [] == letters.asked


async def test_a_call_leaves_a_record(letters: Letters, tmp_path: Path) -> None:
    asked = await ask(tmp_path, embed(), ["a", "b", "c"])
    (record,) = [record for record in asked.records if record["kind"] == "llm.embed"]
    assert {
        "connector": "letters",
        "block": "main.vec",
        "provider": "TEST",
        "model": "letters-1",
        "count": 3,
        "dimensions": 2,
        "tokens": 7,
    } == record["attrs"]
    assert record["durationNs"] >= 0


async def test_a_call_that_fails_leaves_a_record_too(letters: Letters, tmp_path: Path) -> None:
    asked = await ask(tmp_path, embed(), "refuse")
    assert 'block "vec": no such model' == asked.error
    (record,) = [record for record in asked.records if record["kind"] == "llm.embed"]
    assert "no such model" == record["error"]


async def test_it_works_with_the_model_inside_of_flowrt(tmp_path: Path) -> None:
    near = {"type": "set-payload", "value": "[size(vars.embedding), size(vars.embedding[0])]"}
    whole = service(embed(), "embed-local", dimensions=64)
    whole["flows"][0]["process"].append(near)
    async with load(tmp_path, whole) as running:
        asked = await send(running, ["a bill", "an invoice", "a tree"])
    assert [3, 64] == asked.body
    (record,) = [record for record in asked.records if record["kind"] == "llm.embed"]
    assert ("LOCAL", 3, 64) == tuple(
        record["attrs"][key] for key in ("provider", "count", "dimensions")
    )
    assert "tokens" not in record["attrs"]


async def test_a_length_the_model_does_not_have_fails_the_block(tmp_path: Path) -> None:
    async with load(tmp_path, service(embed(dimensions=512), "embed-local")) as running:
        asked = await send(running, "a")
    assert "vectors of 512 dimensions are not possible" in asked.error


@pytest.mark.parametrize(
    ("settings", "place", "text"),
    [
        ({"connector": "model"}, "connector", 'connector "model" is not one that embeds texts'),
        ({"connector": "claude"}, "connector", "is not one that embeds texts"),
        ({"connector": "none"}, "connector", "is not configured"),
        ({"dimensions": 0}, "dimensions", "at least 1"),
        ({"model": ""}, "model", "must not be empty"),
        ({"resultVar": ""}, "resultVar", "must not be empty"),
        ({"text": "body.("}, "text", "does not compile"),
        ({"into": "x"}, "into", "unknown"),
    ],
)
def test_a_setting_that_cannot_work_is_a_load_error(
    letters: Letters, tmp_path: Path, settings: dict[str, Any], place: str, text: str
) -> None:
    whole = service(embed(**settings))
    whole["connectors"].append(
        {"name": "claude", "type": "llm-anthropic", "settings": {"apiKey": "k"}}
    )
    with pytest.raises(ConfigError, match=r"service\.yaml:\d+:\d+ flows\.main\.") as found:
        load(tmp_path, whole)
    assert f"process[0].{place}: " in str(found.value)
    assert text in str(found.value)
