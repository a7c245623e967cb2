"""Answers that grow before the reader's eyes: the placeholder, edited while an agent writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from flowrt.clock import Clock
from flowrt.connectors.slack.client import SlackClient, SlackFailure
from flowrt.observe.log import get_logger

_log = get_logger("flowrt.slack")

PERIOD = 1.0
"""Seconds between two edits in one channel, which is what Slack allows."""
MOST = 1000
"""Answers that are remembered while they grow; those of failed runs are never finished."""

Spawn = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]


class _Channel:
    """What is to be shown in one channel: by message, what makes its newest text."""

    def __init__(self) -> None:
        self.pending: dict[str, Callable[[], str]] = {}
        self.sending = asyncio.Lock()
        self.next_at = 0.0


class Progress:
    """Shows texts that change faster than Slack takes them: the newest one each second.

    What was overtaken is never sent. An edit that fails is logged and forgotten, the answer itself
    comes later.
    """

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._channels: dict[str, _Channel] = {}
        self.written: dict[tuple[str, str], tuple[int, str]] = {}
        """By message: the turn that its agent is in, and what it has written in it."""

    def grow(self, channel: str, ts: str, turn: int, piece: str) -> str:
        """Add a piece to what an agent writes in a turn; all of it so far."""
        before = self.written.get((channel, ts), (turn, ""))
        text = before[1] + piece if before[0] == turn else piece
        self.written[channel, ts] = (turn, text)
        while len(self.written) > MOST:
            del self.written[next(iter(self.written))]
        return text

    def show(
        self, channel: str, ts: str, text: Callable[[], str], clock: Clock, spawn: Spawn
    ) -> None:
        """Have a message show a text soon, unless something newer comes.

        `text` is asked when it is sent: most texts never are. Empty, nothing is.
        """
        place = self._channels.get(channel)
        if place is not None:
            place.pending[ts] = text
            return
        place = self._channels[channel] = _Channel()
        place.pending[ts] = text
        spawn(self._pump(channel, place, clock), f"edits in slack channel {channel}")

    async def finish(self, channel: str, ts: str) -> None:
        """Show nothing more in a message: its answer comes now, and must not be overtaken."""
        self.written.pop((channel, ts), None)
        place = self._channels.get(channel)
        if place is not None:
            place.pending.pop(ts, None)
            async with place.sending:
                pass

    async def _pump(self, channel: str, place: _Channel, clock: Clock) -> None:
        try:
            # After the last edit too: whoever comes within the second finds this pump.
            while place.pending or place.next_at > clock.monotonic():
                await clock.sleep(max(0.0, place.next_at - clock.monotonic()))
                if not place.pending:
                    return
                ts = next(iter(place.pending))
                text = place.pending.pop(ts)()
                if not text:
                    continue
                place.next_at = clock.monotonic() + PERIOD
                async with place.sending:
                    await self._edit(channel, ts, text, clock)
        finally:
            if self._channels.get(channel) is place:
                del self._channels[channel]

    async def _edit(self, channel: str, ts: str, text: str, clock: Clock) -> None:
        arguments = {"channel": channel, "ts": ts, "text": text, "parse": "none"}
        try:
            await self._client.call("chat.update", arguments, clock)
        except SlackFailure as error:
            _log.warning("an answer was not shown while it grew", error=str(error))
