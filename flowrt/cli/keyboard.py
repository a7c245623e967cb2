"""What somebody types into `flowrt chat`: messages, and whether a gated call may run."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from flowrt.agent.live import LiveRuns


class Keyboard:
    """Lines from standard input, one reader at a time.

    A read cannot be taken back: a question that is over leaves it to whoever asks next.
    """

    def __init__(self) -> None:
        self._reading: asyncio.Future[str | None] | None = None

    async def line(self, prompt: str) -> str | None:
        """The next line; None at the end of input. The prompt is for terminals."""
        shown = prompt if sys.stdin.isatty() else ""
        if self._reading is None:
            self._reading = asyncio.ensure_future(asyncio.to_thread(_read_line, shown))
        elif shown:
            print(f"\n{shown}", end="", flush=True)
        reading = self._reading
        try:
            return await asyncio.shield(reading)
        finally:
            if reading.done():
                self._reading = None


class GateKeeper:
    """Asks for the gated calls of the runs under way; whatever is not yes denies."""

    def __init__(self, keyboard: Keyboard, runs: LiveRuns) -> None:
        self._keyboard = keyboard
        self._runs = runs
        self._turn = asyncio.Lock()
        self._asking: set[asyncio.Task[None]] = set()

    def ask(self, event: dict[str, Any]) -> None:
        """Ask about the call of a `tool_authorization` event, after what is asked already."""
        self._asking.add(asyncio.create_task(self._ask(event)))

    async def close(self) -> None:
        """Nothing is waiting any more: take the open questions back."""
        asking, self._asking = self._asking, set()
        for task in asking:
            task.cancel()
        if asking:
            await asyncio.wait(asking)

    async def _ask(self, event: dict[str, Any]) -> None:
        arguments = json.dumps(event["input"], ensure_ascii=False)
        async with self._turn:
            line = await self._keyboard.line(f"allow {event['tool']} {arguments}? [y/N] ")
        allowed = line is not None and line.strip().lower() in ("y", "yes")
        self._runs.answer(event["authorizationId"], allowed)


def _read_line(prompt: str) -> str | None:
    try:
        return input(prompt)
    except EOFError:
        return None
