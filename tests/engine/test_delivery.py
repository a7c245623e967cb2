"""Messages that may come again: their turns and their marks."""

from __future__ import annotations

import asyncio

from flowrt.engine.delivery import Delivery
from flowrt.engine.shared_turns import Turns
from tests.engine.test_shared_turns import Box


async def test_branches_of_one_message_wait_for_its_turn_together() -> None:
    """Agents in a `fork`, or in tools that a model calls at once."""
    box = Box(a=["1", "2"])
    turns = Turns(box.heads)
    delivery = Delivery("post", lambda: turns.wait("2", "a"))
    branches = [asyncio.create_task(delivery.turn()) for _ in range(3)]
    (await box.asked.get()).set()
    question = await box.asked.get()
    assert not any(branch.done() for branch in branches)
    box.orders["a"].pop(0)
    question.set()
    async with asyncio.timeout(5):
        await asyncio.gather(*branches)


def test_a_mark_is_the_same_when_the_message_comes_again_and_else_another() -> None:
    first, again, other = Delivery("1"), Delivery("1"), Delivery("2")
    marks = [first.mark("agent", "t"), first.mark("agent", "t"), first.mark("agentt", "")]
    assert 3 == len(set(marks))
    assert marks == [again.mark("agent", "t"), again.mark("agent", "t"), again.mark("agentt", "")]
    assert other.mark("agent", "t") not in marks
    assert "" == Delivery().mark("agent", "t")
