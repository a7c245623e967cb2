"""A block that waits until the test lets it go on."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from flowrt.engine.block import Block, Settings
from flowrt.engine.run import Run
from flowrt.message import Message

GATE = {"type": "test-gate"}


class Gate(Block[Settings]):
    """Waits for `Gate.opened`, which the test makes."""

    Settings = Settings
    opened: ClassVar[asyncio.Event]

    async def run(self, message: Message, run: Run) -> Message:
        await Gate.opened.wait()
        return message
