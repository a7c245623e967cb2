"""Milliseconds of a turn through the real SDK against the HTTP fake, beyond two bare SDK calls."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.measure import ANSWER, document, median, message, report, service
from flowrt.testing import FakeMessagesAPI

TURNS = 120


async def main() -> None:
    """The same requests twice: through a flow, and straight from the SDK."""

    def reply(body: dict[str, Any]) -> dict[str, Any]:
        last = body["messages"][-1]["content"][-1]
        if last["type"] == "text":
            return {"toolCalls": [{"name": "look", "input": {"q": "x"}}]}
        return {"text": ANSWER}

    with FakeMessagesAPI(reply=reply) as api:
        content = document()
        settings = {"apiKey": "k", "baseURL": api.base_url}
        content["connectors"] = [{"name": "model", "type": "llm-anthropic", "settings": settings}]
        with service(content) as made:
            async with made:
                turns = [await _time(made.invoke("chat", message())) for _ in range(TURNS)]
        bodies = [call.body for call in api.requests[-20:]]
        bare = await _bare(api.base_url, bodies)
    turn = median(turns[20:])
    report("sdk", turn_ms=turn, bare_call_ms=bare, beyond_two_calls_ms=round(turn - 2 * bare, 3))


async def _bare(base_url: str, bodies: list[dict[str, Any]]) -> float:
    from anthropic import AsyncAnthropic

    async with AsyncAnthropic(api_key="k", base_url=base_url) as client:
        times = []
        for body in bodies * 6:
            times.append(await _time(client.messages.create(**body)))
    return median(times[20:])


async def _time(work: Any) -> float:
    began = time.perf_counter()
    await work
    return (time.perf_counter() - began) * 1e3


if __name__ == "__main__":
    asyncio.run(main())
