"""Types that the Octo dialect has and flowrt has not are refused with what to do instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from tests.services import flows, load


def refused(folder: Path, document: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, document)
    return str(caught.value)


@pytest.mark.parametrize(
    ("type_", "way_out"),
    [
        ("pinecone-query", "call it with `rest`"),
        ("notion-retrieve-page", "call it with `rest`"),
        ("tavily-search", "call it with `rest`"),
        ("parallel-task-run", "call it with `rest`"),
        ("mongodb-find", "a package can bring it"),
        ("jwt-validate", "have tokens checked in front of the service"),
        ("cli-run", "a package can bring it"),
    ],
)
def test_a_block_of_the_dialect_that_is_not_here_says_what_to_do(
    tmp_path: Path, type_: str, way_out: str
) -> None:
    text = refused(tmp_path, flows(main=[{"type": type_, "settings": {"query": "x"}}]))
    assert "service.yaml:6:11 flows.main.process[0].type" in text
    assert f"{type_!r} is a block of the Octo dialect that flowrt does not have" in text
    assert way_out in text
    assert "did you mean" not in text


@pytest.mark.parametrize("type_", ["mongodb", "notion", "parallel", "pinecone", "tavily"])
def test_a_connector_of_the_dialect_that_is_not_here_says_what_to_do(
    tmp_path: Path, type_: str
) -> None:
    document = flows(main=[]) | {"connectors": [{"name": "x", "type": type_}]}
    text = refused(tmp_path, document)
    assert f"{type_!r} is a connector of the Octo dialect that flowrt does not have" in text


@pytest.mark.parametrize(
    ("type_", "meant"),
    [
        ("http", "rest"),
        ("stop", "validate"),
        ("transform", "multi-transform"),
        ("try", "handle-errors"),
    ],
)
def test_a_block_that_only_the_dialect_s_docs_know_leads_to_the_one_that_is_meant(
    tmp_path: Path, type_: str, meant: str
) -> None:
    text = refused(tmp_path, flows(main=[{"type": type_}]))
    assert f"unknown block type {type_!r}; did you mean {meant!r}?" in text
