"""`embed-local` in a service: what is missing is said when it starts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError, ConnectorError
from tests.services import flows, load


def document(**settings: Any) -> dict[str, Any]:
    connector = {"name": "vectors", "type": "embed-local", "settings": settings}
    return flows(main=[]) | {"connectors": [connector]}


async def test_a_missing_package_is_told_when_the_service_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    service = load(tmp_path, document())
    with pytest.raises(ConnectorError, match=r"connector 'vectors': .* 'flowrt\[embeddings\]'"):
        await service.start()


async def test_it_starts_again_after_a_stop(tmp_path: Path) -> None:
    service = load(tmp_path, document(dimensions=128))
    for _ in range(2):
        async with service:
            pass


async def test_the_sentence_model_says_which_packages_it_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    service = load(tmp_path, document(model="minilm"))
    with pytest.raises(ConnectorError, match=r"'onnxruntime' .* 'flowrt\[minilm\]'"):
        await service.start()


@pytest.mark.parametrize("model", [{}, {"model": "wordllama"}, {"model": "minilm"}])
async def test_each_model_starts(tmp_path: Path, model: dict[str, str]) -> None:
    async with load(tmp_path, document(**model)):
        pass


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"model": "minilm", "dimensions": 256}, "minilm gives no vectors of 256 .* it gives 384"),
        ({"dimensions": 384}, "wordllama gives no vectors of 384 .* it gives 64, 128 or 256"),
    ],
)
def test_a_length_of_another_model_is_a_load_error(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        load(tmp_path, document(**settings))


@pytest.mark.parametrize("settings", [{"dimensions": 512}, {"dimensions": 100}, {"apiKey": "k"}])
def test_a_setting_that_cannot_work_is_a_load_error(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=r"service\.yaml:\d+:\d+ connectors\.vectors"):
        load(tmp_path, document(**settings))
