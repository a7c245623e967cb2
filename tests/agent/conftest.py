"""A fake Messages API for every test of the agent, and strict requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from flowrt.engine import registry
from flowrt.engine.block import Block, Settings
from flowrt.engine.run import Run
from flowrt.message import Message
from flowrt.testing import FakeMessagesAPI


class Hold:
    """A place in a chain where a message waits until the test lets it go."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()
        self.failure: BaseException | None = None


@pytest.fixture
def held() -> Hold:
    """What the block type `hold` waits for in this test."""
    hold = Hold()

    class HoldBlock(Block[Settings]):
        Settings = Settings

        async def run(self, message: Message, run: Run) -> Message:
            hold.reached.set()
            await hold.opened.wait()
            if hold.failure is not None:
                raise hold.failure
            return message

    registry.blocks.add("hold", HoldBlock)
    return hold


@pytest.fixture
def api() -> Iterator[FakeMessagesAPI]:
    with FakeMessagesAPI() as fake:
        yield fake
