"""Chains for tests of blocks: run one through a flow, and blocks that show what happens to them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from flowrt.engine import registry
from flowrt.engine.block import Block, Settings
from flowrt.engine.run import Run
from flowrt.message import Message
from flowrt.service import Result
from tests.services import flows, load

Chain = list[dict[str, Any]]


async def run(
    folder: Path,
    chain: Chain,
    data: Any = None,
    *,
    flow: dict[str, Any] | None = None,
    **variables: Any,
) -> Result:
    """Send `data` through a flow `main`; `flow` are more keys of the flow."""
    document = flows(main=chain)
    document["flows"][0] |= flow or {}
    async with load(folder, document) as service:
        return await service.invoke("main", data, variables)


async def message(folder: Path, chain: Chain, data: Any = None, **variables: Any) -> Message:
    """The message that comes out."""
    result = await run(folder, chain, data, **variables)
    assert result.message is not None, result.error
    return result.message


def payload(value: str) -> dict[str, Any]:
    """Make the body the value of an expression."""
    return {"type": "set-payload", "value": value}


def variable(name: str, value: str) -> dict[str, Any]:
    """Set a variable to the value of an expression."""
    return {"type": "set-variable", "settings": {"name": name, "value": value}}


RAW = {"type": "set-payload", "value": '"text"', "rawBody": True}
STOP = {"type": "test-stop"}
DROP = {"type": "filter", "expr": "false"}
BROKEN = {"type": "test-broken"}
HANG = {"type": "test-hang"}
MEET = {"type": "test-meet"}
NOTE = {"type": "test-note"}


class Stop(Block[Settings]):
    """Asks every enclosing chain to end."""

    Settings = Settings

    async def run(self, message: Message, run: Run) -> Message:
        message.stop = True
        return message


class Broken(Block[Settings]):
    """Fails."""

    Settings = Settings

    async def run(self, message: Message, run: Run) -> Message:
        raise ValueError("boom")


class Hang(Block[Settings]):
    """Never ends by itself; `Hang.cancelled` counts those that were cancelled."""

    Settings = Settings
    begun = 0
    cancelled = 0

    async def run(self, message: Message, run: Run) -> Message:
        Hang.begun += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            # A branch that needs a moment to clean up is waited for.
            await asyncio.sleep(0)
            Hang.cancelled += 1
            raise
        return message


class Meet(Block[Settings]):
    """Lets the others run; `Meet.most` is how many were in it at the same time."""

    Settings = Settings
    inside = 0
    most = 0

    async def run(self, message: Message, run: Run) -> Message:
        Meet.inside += 1
        Meet.most = max(Meet.most, Meet.inside)
        for _ in range(5):
            await asyncio.sleep(0)
        Meet.inside -= 1
        return message


class Note(Block[Settings]):
    """Keeps a copy of each message that passes, in `Note.seen`."""

    Settings = Settings
    seen: list[Message] = []  # noqa: RUF012 - emptied for each test

    async def run(self, message: Message, run: Run) -> Message:
        Note.seen.append(message.clone())
        return message


def register() -> None:
    """Register the blocks above, with nothing counted yet."""
    Hang.begun = Hang.cancelled = Meet.inside = Meet.most = 0
    Note.seen = []
    for kind in (Stop, Broken, Hang, Meet, Note):
        registry.blocks.add(f"test-{kind.__name__.lower()}", kind)
