"""Microseconds a `set-payload` block with one expression, and an expression alone."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.measure import median, report, service
from flowrt.expr import Expression
from flowrt.message import Message

BODY = {"id": 7, "name": "Sam", "text": "x" * 900, "tags": ["a", "b"]}
BLOCKS = 100


async def main() -> None:
    """Time a chain of many blocks, so that what is around it does not count."""
    block = {
        "type": "set-payload",
        "value": '{"id": body.id, "name": body.name, "text": body.text}',
    }
    flow = {"name": "main", "process": [block] * BLOCKS}
    with service({"service": {"name": "bench"}, "flows": [flow]}, "memory:") as made:
        async with made:
            times = []
            for _ in range(60):
                began = time.perf_counter()
                await made.invoke("main", BODY)
                times.append((time.perf_counter() - began) / BLOCKS * 1e6)
    report("set-payload", us=median(times[10:]))
    for source in ("body.name", 'body.id > 3 && body.name == "Sam"', '{"reply": body.name}'):
        report("expression", source=source, us=_expression(source))


def _expression(source: str) -> float:
    expression, message = Expression.compile(source), Message(dict[str, Any](BODY))
    times = []
    for _ in range(30):
        began = time.perf_counter()
        for _ in range(200):
            expression.value(message)
        times.append((time.perf_counter() - began) / 200 * 1e6)
    return median(times)


if __name__ == "__main__":
    asyncio.run(main())
