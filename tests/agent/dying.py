"""A process that sends one message to a flow and may kill itself in the middle of it.

Its arguments are CONFIG STORAGE BODY [DELIVERY [AT]]. The block `die` kills it with no time for
anything, and so does AT: `record` is when an exchange was recorded. On its clock, three seconds
pass between any two looks, so that every checkpoint is due.
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
from flowrt.engine.delivery import Delivery
from flowrt.engine.intake import Intake
from flowrt.engine.run import Run
from flowrt.memory.agent_memory import StoredAgentMemory
from flowrt.message import Message
from flowrt.service import Service
from flowrt.storage.agents.protocol import Turn


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def record_and_die(memory: StoredAgentMemory, *given: Any, **named: Any) -> list[Turn]:
    turns = await record(memory, *given, **named)
    die()
    return turns


record = StoredAgentMemory.append_turns


class Die(Block[Settings]):
    """Ends the process."""

    Settings = Settings

    async def run(self, message: Message, run: Run) -> Message:
        die()
        return message


class HastyClock(SystemClock):
    """Three seconds pass between any two looks at it."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        self._now += 3
        return self._now


async def deliver(service: Service, flow: str, body: Any, delivery: str) -> Message | None:
    """What a source does with a message that may come again."""
    send = Intake(service._built, service, None, None)._deliver_to(service._flows[flow])
    return await send(Message(body), Delivery(delivery))


async def main(config: str, storage: str, body: str, delivery: str = "", at: str = "") -> None:
    """Send the message and print the answer."""
    registry.blocks.add("die", Die)
    if at == "record":
        StoredAgentMemory.append_turns = record_and_die  # type: ignore[method-assign]
    async with Service.load(config, storage=storage, clock=HastyClock()) as service:
        result = await deliver(service, "chat", json.loads(body), delivery)
        sys.stdout.write(json.dumps(result.body if result else None))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
