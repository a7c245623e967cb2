"""Messages of one order, one after the other, though several processes share them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

FIRST_WAIT, LONGEST_WAIT = 0.02, 0.25
"""Seconds between two questions whose turn it is: the one before may end in another process."""


class Turns:
    """Who of the messages that a reader holds waits for an earlier one of its order.

    `heads` tells the first message of each order. It is asked for all that wait together.
    """

    def __init__(self, heads: Callable[[Sequence[str]], Awaitable[list[str]]]) -> None:
        self._heads = heads
        self._waiting: dict[str, tuple[str, asyncio.Event]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()

    async def wait(self, id_: str, order: str) -> None:
        """Wait until the message is the first of its order."""
        turn = asyncio.Event()
        self._waiting[id_] = (order, turn)
        self._moved.set()
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name="whose turn it is")
        try:
            await turn.wait()
        finally:
            del self._waiting[id_]
            if not self._waiting and self._asking is not None:
                self._asking.cancel()
                self._asking = None

    def moved(self) -> None:
        """A message has ended here; the next one need not wait for the next question."""
        self._moved.set()

    async def _ask(self) -> None:
        pause = FIRST_WAIT
        while True:
            self._moved.clear()
            orders = sorted({order for order, _ in self._waiting.values()})
            heads = dict(zip(orders, await self._heads(orders), strict=True))
            for id_, (order, turn) in self._waiting.items():
                # Who came while this was asked has to wait for the next question. Without a head
                # the box was emptied: there is nothing left to wait for.
                if order in heads and heads[order] in (id_, ""):
                    turn.set()
            try:
                async with asyncio.timeout(pause):
                    await self._moved.wait()
                pause = FIRST_WAIT
            except TimeoutError:
                pause = min(LONGEST_WAIT, pause * 1.5)
