"""Whose turn it is among messages that several processes share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from flowrt.engine.shared_turns import Turns


class Box:
    """The orders of a box; each question is held until it is let go."""

    def __init__(self, **orders: list[str]) -> None:
        self.orders = orders
        self.asked: asyncio.Queue[asyncio.Event] = asyncio.Queue()

    async def heads(self, orders: Sequence[str]) -> list[str]:
        go = asyncio.Event()
        await self.asked.put(go)
        await go.wait()
        return [self.orders[order][0] if self.orders[order] else "" for order in orders]


async def test_who_comes_while_it_is_asked_waits_for_the_next_question() -> None:
    box = Box(a=["1"], b=["2", "3"])
    turns = Turns(box.heads)
    first = asyncio.create_task(turns.wait("1", "a"))
    question = await box.asked.get()
    late = asyncio.create_task(turns.wait("3", "b"))
    await asyncio.sleep(0)
    question.set()
    await first
    (await box.asked.get()).set()
    question = await box.asked.get()
    assert not late.done()
    box.orders["b"].pop(0)
    question.set()
    await late


async def test_nobody_asks_once_nobody_waits() -> None:
    box = Box(a=["1", "2"])
    turns = Turns(box.heads)
    waiting = asyncio.create_task(turns.wait("2", "a"))
    (await box.asked.get()).set()
    waiting.cancel()
    await asyncio.wait([waiting])
    again = asyncio.create_task(turns.wait("1", "a"))
    (await box.asked.get()).set()
    await again
    assert box.asked.empty()


async def test_an_order_that_is_gone_holds_nobody() -> None:
    box = Box(a=[])
    turns = Turns(box.heads)
    waiting = asyncio.create_task(turns.wait("2", "a"))
    (await box.asked.get()).set()
    await waiting
