"""Turns a second with 200 threads at once and 200 ms a model call: 500 a second is ideal."""

from __future__ import annotations

import asyncio
import time

from bench.measure import document, message, report, service
from flowrt.message import Outcome

THREADS, TURNS, DELAY = 200, 10, 0.2


async def main() -> None:
    """Every thread does its turns one after the other, all threads together."""
    for run in range(3):
        # One reply of the script serves whichever thread asks: the tool call is picked by `when`.
        content = document(delay=DELAY)
        first, second = content["connectors"][0]["settings"]["replies"]
        first["when"] = "request.lastUserText.startsWith('u')"
        second["when"] = "true"
        with service(content) as made:
            async with made:
                began = time.perf_counter()

                async def thread(number: int) -> None:
                    for _ in range(TURNS):
                        result = await made.invoke("chat", message(f"t{number}"))
                        assert result.outcome is Outcome.COMPLETED, result.error

                await asyncio.gather(*(thread(number) for number in range(THREADS)))
                seconds = time.perf_counter() - began
        report(
            "threads",
            run=run,
            turns_per_second=round(THREADS * TURNS / seconds, 1),
            ideal=THREADS / (2 * DELAY),
        )


if __name__ == "__main__":
    asyncio.run(main())
