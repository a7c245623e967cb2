"""Microseconds a control block costs, and how many times that is the same work in bare Python."""

from __future__ import annotations

import asyncio
import copy
import json
import time
from collections.abc import Callable
from typing import Any

from bench.measure import median, report, service
from flowrt.service import Service

BODY = {"id": 7, "name": "Sam", "kind": "order", "list": [1, 2, 3, 4]}
BLOCKS, ROUNDS, WARM_UP = 50, 40, 10
ELEMENTS = (100, 1000)

NOTHING: dict[str, Any] = {"process": []}


def _if(body: Any) -> Any:
    return body if body["id"] > 3 else None


def _switch(body: Any) -> Any:
    return body if body["kind"] == "bill" else body if body["kind"] == "order" else None


def _foreach(body: Any) -> Any:
    kept = []
    for item in body["list"]:
        kept.append(item)
    return body


def _copies(body: Any) -> Any:
    return [copy.deepcopy(body) for _ in range(4)]


def _validate(body: Any) -> Any:
    return [rule for rule in (body["id"] > 3, body["name"] != "") if not rule]


def _recover(body: Any) -> Any:
    try:
        return body["missing"]
    except KeyError as error:
        return str(error)


_CACHE = {"7": json.dumps(BODY)}


def _cached(body: Any) -> Any:
    return json.loads(_CACHE[str(body["id"])])


def _call(body: Any) -> Any:
    return copy.deepcopy(body)


CASES: list[tuple[dict[str, Any], Callable[[Any], Any]]] = [
    ({"type": "if", "condition": "body.id > 3", "then": NOTHING}, _if),
    (
        {
            "type": "switch",
            "cases": [
                {"when": 'body.kind == "bill"', "process": []},
                {"when": 'body.kind == "order"', "process": []},
            ],
        },
        _switch,
    ),
    ({"type": "foreach", "items": "body.list", "body": NOTHING}, _foreach),
    ({"type": "fork", "branches": [{"process": []}] * 4}, _copies),
    ({"type": "enrich", "body": NOTHING, "setVars": {"name": "body.name"}}, _if),
    (
        {"type": "validate", "rules": [{"expr": "body.id > 3"}, {"expr": 'body.name != ""'}]},
        _validate,
    ),
    (
        {
            "type": "handle-errors",
            "process": [{"type": "set-payload", "value": "body.missing"}],
            "error": [],
        },
        _recover,
    ),
    ({"type": "cache-scope", "key": "body.id", "body": NOTHING}, _cached),
    ({"type": "flow-ref", "settings": {"flow": "other"}}, _call),
]


async def main() -> None:
    """Time chains of many blocks, so that what is around them does not count."""
    for block, bare in CASES:
        flows = [
            {"name": "main", "process": [block] * BLOCKS},
            {"name": "other", "process": []},
        ]
        with service({"service": {"name": "bench"}, "flows": flows}, "memory:") as made:
            _report(block["type"], await _blocks(made), _bare(bare))
    split = {"type": "split", "items": "body"}
    # A split and its aggregate cannot be told apart from outside: the second is both.
    for name, chain in (("split", [split]), ("split, aggregate", [split, {"type": "aggregate"}])):
        flows = [{"name": "main", "process": chain}]
        for elements in ELEMENTS:
            with service({"service": {"name": "bench"}, "flows": flows}, "memory:") as made:
                us = await _elements(made, elements)
            _report(name, us, _bare(lambda body: [dict(body)]), elements=elements)


def _report(block: str, us: float, bare: float, **more: Any) -> None:
    report("engine", block=block, us=us, bare_us=bare, ratio=round(us / bare, 1), **more)


async def _blocks(made: Service) -> float:
    async with made:
        times = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            await made.invoke("main", BODY)
            times.append((time.perf_counter() - began) / BLOCKS * 1e6)
    return median(times[WARM_UP:])


async def _elements(made: Service, elements: int) -> float:
    """For each element, from the start of the service to its stop, which waits for them."""
    times = []
    for _ in range(8):
        began = time.perf_counter()
        async with made:
            await made.invoke("main", [BODY] * elements)
        times.append((time.perf_counter() - began) / elements * 1e6)
    return median(times[2:])


def _bare(work: Callable[[Any], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(200):
            work(BODY)
        times.append((time.perf_counter() - began) / 200 * 1e6)
    return median(times)


if __name__ == "__main__":
    asyncio.run(main())
