"""A process that sends one message to a flow and may kill itself in the middle of it.

Its arguments are CONFIG STORAGE BODY. The block `die` kills it with no time for anything; on its
clock, three seconds pass between any two looks, so that every checkpoint is due.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

from flowrt.clock import SystemClock
from flowrt.engine import registry
from flowrt.engine.block import Block, Settings
from flowrt.engine.run import Run
from flowrt.message import Message
from flowrt.service import Service


class Die(Block[Settings]):
    """Ends the process."""

    Settings = Settings

    async def run(self, message: Message, run: Run) -> Message:
        os.kill(os.getpid(), signal.SIGKILL)
        return message


class HastyClock(SystemClock):
    """Three seconds pass between any two looks at it."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        self._now += 3
        return self._now


async def main(config: str, storage: str, body: Any) -> None:
    """Send the message and print the answer."""
    registry.blocks.add("die", Die)
    async with Service.load(config, storage=storage, clock=HastyClock()) as service:
        result = await service.invoke("chat", body)
        sys.stdout.write(json.dumps(result.message.body if result.message else str(result.error)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
