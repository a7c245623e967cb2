"""`object-list`: what is stored under keys that begin alike."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from tests.blocks.chains import message, payload, run
from tests.services import flows, load


def write(key: str, **settings: Any) -> dict[str, Any]:
    return {"type": "object-write", "settings": {"key": key, **settings}}


def listing(prefix: str, **settings: Any) -> dict[str, Any]:
    return {"type": "object-list", "settings": {"prefix": prefix, **settings}}


@pytest.fixture(params=["memory", "sqlite", "redis"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "redis":
        url: str = request.getfixturevalue("redis_url")
        return url
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/state.db"


async def test_what_begins_with_the_prefix_is_listed_in_the_order_of_its_keys(
    tmp_path: Path, storage: str
) -> None:
    key = f'"{tmp_path.name}/notes/" + body.of + "/" + body.id'
    prefix = f'"{tmp_path.name}/notes/" + body.of + "/"'
    document = flows(keep=[write(key, value="body.id")], notes=[listing(prefix)])
    async with load(tmp_path, document, storage) as service:
        for of, id_ in (("ann", "b"), ("ann", "a"), ("anna", "c"), ("a*", "d"), ("a:", "e")):
            await service.invoke("keep", {"of": of, "id": id_})
        ann = (await service.invoke("notes", {"of": "ann"})).message
        star = (await service.invoke("notes", {"of": "a*"})).message
    assert ann is not None
    assert star is not None
    begin = f"{tmp_path.name}/notes"
    expected = [
        {"key": f"{begin}/ann/a", "value": "a"},
        {"key": f"{begin}/ann/b", "value": "b"},
    ]
    assert expected == ann.body
    assert [{"key": f"{begin}/a*/d", "value": "d"}] == star.body


async def test_many_who_write_at_once_lose_nothing(tmp_path: Path, storage: str) -> None:
    key = f'"{tmp_path.name}/" + string(body.id)'
    document = flows(
        keep=[write(key, value="body")], notes=[listing(f'"{tmp_path.name}/"', **{"as": "found"})]
    )
    async with load(tmp_path, document, storage) as service:
        await asyncio.gather(*(service.invoke("keep", {"id": number}) for number in range(50)))
        found = (await service.invoke("notes", "kept")).message
    assert found is not None
    assert "kept" == found.body
    assert set(range(50)) == {entry["value"]["id"] for entry in found.vars["found"]}


async def test_the_tiers_are_apart_and_an_empty_list_is_a_list(tmp_path: Path) -> None:
    chain = [write('"a"', volatile=True), listing('"a"')]
    assert [] == (await message(tmp_path, chain, 1)).body
    chain[1] = listing('"a"', volatile=True)
    assert [{"key": "a", "value": 1}] == (await message(tmp_path, chain, 1)).body


async def test_more_than_the_limit_is_an_error_and_not_a_shorter_list(tmp_path: Path) -> None:
    chain = [write('"n/1"'), write('"n/2"'), listing('"n/"', limit=2)]
    assert 2 == len((await message(tmp_path, chain, {})).body)
    chain.insert(0, write('"n/3"'))
    error = str((await run(tmp_path, chain, {})).error)
    assert "object-list: more than 2 objects (limit) begin with 'n/'" in error


@pytest.mark.parametrize("prefix", [None, "", "  "])
async def test_a_prefix_that_is_empty_lists_nobody_s_objects(tmp_path: Path, prefix: Any) -> None:
    error = (await run(tmp_path, [listing("body.of")], {"of": prefix})).error
    assert "object-list prefix is missing" in str(error)


async def test_no_prefix_reaches_a_conversation(tmp_path: Path) -> None:
    chain = [write('"x"'), listing('"../agent-memory/"'), payload("body.size()")]
    assert 0 == (await message(tmp_path, chain, {})).body


def test_a_limit_of_nothing_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="limit"):
        load(tmp_path, flows(main=[listing('"x"', limit=0)]))
