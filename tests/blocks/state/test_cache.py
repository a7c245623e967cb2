"""`cache-scope` and `invalidate-cache`: results that are kept."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.message import Outcome
from flowrt.service import Service
from tests.blocks.chains import DROP, MEET, NOTE, RAW, STOP, Note, payload, run, variable
from tests.services import flows, load
from tests.storage.hands import HandClock

KEY = "body.key"


def cached(*chain: dict[str, Any], key: str = KEY, **settings: Any) -> dict[str, Any]:
    return {"type": "cache-scope", "key": key, "body": {"process": [NOTE, *chain]}, **settings}


async def call(service: Service, key: Any = "k", flow: str = "main", **data: Any) -> Any:
    result = await service.invoke(flow, {"key": key, **data})
    assert result.message is not None, result.error
    return result.message


async def test_a_result_is_made_once_for_each_key(tmp_path: Path) -> None:
    chain = [cached(payload('"result of " + body.key'))]
    async with load(tmp_path, flows(main=chain)) as service:
        found = [(await call(service, key)).body for key in ("a", "a", "b", "a")]
    assert ["result of a", "result of a", "result of b", "result of a"] == found
    assert 2 == len(Note.seen)


async def test_variables_are_not_kept(tmp_path: Path) -> None:
    async with load(tmp_path, flows(main=[cached(variable("x", "1"))])) as service:
        assert {"x": 1} == dict((await call(service)).vars)
        assert {} == dict((await call(service)).vars)


@pytest.mark.parametrize(
    ("ttl", "within", "after"), [({}, 59, 60), ({"ttl": "2m"}, 119, 120), ({"ttl": 5}, 4, 5)]
)
async def test_a_result_expires(
    tmp_path: Path, ttl: dict[str, Any], within: float, after: float
) -> None:
    clock = HandClock()
    async with load(tmp_path, flows(main=[cached(**ttl)]), clock=clock) as service:
        await call(service)
        clock.advance(within)
        await call(service)
        assert 1 == len(Note.seen)
        clock.advance(after - within)
        await call(service)
        assert 2 == len(Note.seen)


@pytest.mark.parametrize("never", ["0", 0, "0s"])
async def test_a_ttl_of_zero_keeps_it_for_ever(tmp_path: Path, never: Any) -> None:
    clock = HandClock()
    async with load(tmp_path, flows(main=[cached(ttl=never)]), clock=clock) as service:
        await call(service)
        clock.advance(1e9)
        await call(service)
    assert 1 == len(Note.seen)


@pytest.mark.parametrize(("last", "outcome"), [(STOP, Outcome.STOPPED), (DROP, Outcome.DROPPED)])
async def test_what_is_stopped_or_dropped_is_not_kept(
    tmp_path: Path, last: dict[str, Any], outcome: Outcome
) -> None:
    async with load(tmp_path, flows(main=[cached(last)])) as service:
        for _ in range(2):
            assert outcome == (await service.invoke("main", {"key": "k"})).outcome
    assert 2 == len(Note.seen)


async def test_raw_content_comes_back_as_raw_content(tmp_path: Path) -> None:
    async with load(tmp_path, flows(main=[cached(RAW)])) as service:
        for _ in range(2):
            found = await call(service)
            assert (True, "text") == (found.raw, found.body["rawData"])
    assert 1 == len(Note.seen)


async def test_a_kept_json_result_takes_the_place_of_raw_content(tmp_path: Path) -> None:
    chain = [{**RAW}, cached(payload("1"), key='"k"')]
    async with load(tmp_path, flows(main=chain)) as service:
        assert [False, False] == [(await call(service)).raw for _ in range(2)]


async def test_null_is_a_result(tmp_path: Path) -> None:
    async with load(tmp_path, flows(main=[cached(payload("null"))])) as service:
        assert [None, None] == [(await call(service)).body for _ in range(2)]
    assert 1 == len(Note.seen)


async def test_an_entry_is_where_other_runtimes_of_the_dialect_look(tmp_path: Path) -> None:
    clock = HandClock()
    async with load(tmp_path, flows(main=[cached()]), clock=clock) as service:
        await call(service, "a key")
        space = service.storage.space("user_volatile")
        stored = await space.get("cache/" + hashlib.sha256(b"a key").hexdigest())
    assert stored is not None
    expires = round((clock.now().timestamp() + 60) * 1e9)
    assert {"expiresAt": expires, "body": {"key": "a key"}} == stored.value


async def test_a_result_is_forgotten_on_demand(tmp_path: Path) -> None:
    forget = {"type": "invalidate-cache", "key": KEY}
    async with load(tmp_path, flows(main=[cached()], forget=[forget])) as service:
        for key in ("a", "b"):
            await call(service, key)
        for _ in range(2):
            assert {"key": "a"} == (await call(service, "a", flow="forget")).body
        for key in ("a", "b"):
            await call(service, key)
    assert ["a", "b", "a"] == [seen.body["key"] for seen in Note.seen]


@pytest.mark.parametrize("key", [None, "", "  ", {"a": 1}])
@pytest.mark.parametrize("type_", ["cache-scope", "invalidate-cache"])
async def test_a_key_that_is_none_is_an_error(tmp_path: Path, type_: str, key: Any) -> None:
    block = {"type": type_, "key": KEY}
    if type_ == "cache-scope":
        block |= {"body": {"process": []}}  # type: ignore[dict-item]
    error = (await run(tmp_path, [block], {"key": key})).error
    assert f"{type_} key is missing" in str(error)


async def test_a_cache_that_is_down_costs_a_line_and_not_the_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forget = {"type": "invalidate-cache", "key": KEY}
    document = flows(main=[cached(payload('"made"'))], forget=[forget])
    async with load(tmp_path, document, volatile="redis://127.0.0.1:9/0") as service:
        assert "made" == (await call(service)).body
        lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
        assert ["the cache was not read", "the result was not cached"] == [
            line["event"] for line in lines
        ]
        assert all("redis://127.0.0.1:9" in line["error"] for line in lines)
        # What is known to be wrong must not stay in silence.
        result = await service.invoke("forget", {"key": "k"})
        assert Outcome.FAILED == result.outcome


async def test_two_that_miss_at_the_same_time_both_make_the_result(tmp_path: Path) -> None:
    async with load(tmp_path, flows(main=[cached(MEET)])) as service:
        await asyncio.gather(call(service), call(service))
        await call(service)
    assert 2 == len(Note.seen)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"ttl": "-1s"}, "a duration cannot be negative"),
        ({"ttl": -1}, "a duration cannot be negative"),
        ({"ttl": "soon"}, "expected a duration"),
        ({"key": "1 +"}, "key"),
    ],
)
def test_what_cannot_work_does_not_load(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        load(tmp_path, flows(main=[cached(**settings)]))
    (fault,) = caught.value.faults
    assert fault.position is not None
