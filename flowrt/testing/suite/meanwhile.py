"""What happens while a turn waits, such as the answer to a gated call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from flowrt.errors import ExpressionError
from flowrt.message import Message
from flowrt.service import Result
from flowrt.testing.suite.check import Failure, check_result
from flowrt.testing.suite.clock import CaseClock
from flowrt.testing.suite.model import Meanwhile

Send = Callable[[Meanwhile, Any], Awaitable[Result]]


class TurnEvents:
    """Collects the events of agents, turn by turn, and lets others wait for them.

    Also those of agents that a message of a source has reached.
    """

    delta: None = None

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self._changed = asyncio.Event()
        self._closed = False

    def event(self, event: dict[str, Any]) -> None:
        self.seen.append(event)
        self._changed.set()

    def begin(self) -> None:
        """A turn begins: what came before it is forgotten."""
        self.seen.clear()
        self._closed = False

    def close(self) -> None:
        """The turn has ended: no more events come."""
        self._closed = True
        self._changed.set()

    async def find(self, kind: str, start: int) -> int | None:
        """The place of the first event of a kind from `start` on; None where none comes."""
        while True:
            for place in range(start, len(self.seen)):
                if self.seen[place]["type"] == kind:
                    return place
            if self._closed:
                return None
            self._changed.clear()
            await self._changed.wait()


class Companion:
    """Plays the `meanwhile` of one turn: its entries one after the other, each once.

    An entry waits for an event behind the one that the entry before it has waited for; one without
    `on` for none. `send` sends the message of an entry.
    """

    def __init__(
        self, entries: Sequence[Meanwhile], events: TurnEvents, clock: CaseClock, send: Send
    ) -> None:
        self._entries = entries
        self._events = events
        self._clock = clock
        self._send = send

    async def beside(
        self, turn: Coroutine[Any, Any, Result], place: str
    ) -> tuple[Result, list[Failure]]:
        """The result of the turn, and what of the entries was not as they say."""
        playing = asyncio.create_task(self._play(place))
        try:
            result = await turn
        except BaseException:
            playing.cancel()
            raise
        self._events.close()
        return result, await playing

    async def _play(self, place: str) -> list[Failure]:
        failures: list[Failure] = []
        at = -1
        for index, entry in enumerate(self._entries):
            path = f"{place}[{index}]"
            if entry.on is not None:
                found = await self._events.find(entry.on, at + 1)
                if found is None:
                    return [*failures, self._missed(entry.on, at + 1, path)]
                at = found
            if entry.after:
                self._clock.advance(entry.after)
                # What was to happen by then has happened when the message comes.
                await asyncio.sleep(0)
            failures += await self._sent(entry, at, path)
        return failures

    def _missed(self, kind: str, start: int, path: str) -> Failure:
        came = ", ".join(event["type"] for event in self._events.seen[start:]) or "nothing"
        wanted = f"wanted  an event {kind}\ngot     {came}"
        return Failure(f"{path}.on: its event did not come", wanted)

    async def _sent(self, entry: Meanwhile, at: int, path: str) -> list[Failure]:
        if entry.data is None:
            return []
        seen = self._events.seen
        try:
            data = entry.data.value(Message(), {"event": seen[at], "events": seen[: at + 1]})
        except ExpressionError as error:
            return [Failure(f"{path}.data", str(error))]
        return check_result(entry.expect, await self._send(entry, data), f"{path}.expect")
