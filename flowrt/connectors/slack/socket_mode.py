"""Socket Mode: a connection to Slack that is replaced before it ends, and found again after."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from flowrt.clock import Clock
from flowrt.connectors.slack.client import SlackClient, SlackFailure
from flowrt.connectors.slack.socket_connection import SocketConnection, Take, dial
from flowrt.errors import describe
from flowrt.observe.log import Logger

LONGEST = 30.0
"""Seconds at most between two attempts to connect."""
STEADY = 30.0
"""Seconds after which a connection counts as a good one: its successor is dialled at once."""


class SocketMode:
    """Keeps one connection open from `start` to `stop`; for a moment two, when it is replaced.

    `prepare` is done before each attempt, `take` gets the envelopes of all connections: for those
    of one in order, several at a time where there are two.

    Not slack_sdk's client: that closes the old connection before it opens the new one, and tries a
    refused token for ever. Nor aiohttp's: it forgets to let go of one that broke.
    """

    def __init__(
        self,
        app: SlackClient,
        prepare: Callable[[], Awaitable[None]],
        take: Take,
        clock: Clock,
        log: Logger,
    ) -> None:
        self._app = app
        self._prepare = prepare
        self._take = take
        self._clock = clock
        self._log = log
        self.reached = False
        """Whether there has been a connection since the start."""
        self._connections: list[SocketConnection] = []
        self._away_since: float | None = None
        # Attempts that failed, and connections that soon broke, since there was a good one.
        self._tries = 0

    async def start(self) -> None:
        """Connect. Raises `SlackFailure` where Slack refuses.

        Where it is not reached, attempts go on in the background.
        """
        first = None
        try:
            first = await self._attempt()
        except SlackFailure as failure:
            if not failure.passing:
                raise
            self._tries = 1
            self._gone(str(failure))
        self._keeping = asyncio.create_task(self._keep(first), name="slack's Socket Mode")
        self._keeping.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Close what is open. Slack sends elsewhere, or later, what was not acknowledged."""
        self._keeping.cancel()
        await asyncio.wait([self._keeping])
        # Here: a task that is cancelled before its first step never gets to a `finally`.
        for connection in self._connections:
            await connection.close()

    async def _keep(self, first: SocketConnection | None) -> None:
        old: SocketConnection | None = None
        async with asyncio.TaskGroup() as tasks:
            while True:
                new = first or await self._next(old)
                first = None
                self._back()
                tasks.create_task(new.serve(self._take))
                if old is not None:
                    tasks.create_task(old.leave())
                await new.spent.wait()
                steady = self._clock.monotonic() - new.born >= STEADY
                self._tries = 0 if steady else self._tries + 1
                if not new.over:
                    self._log.info("the connection to slack is replaced", reason=new.why)
                old = new

    async def _next(self, old: SocketConnection | None) -> SocketConnection:
        """A new connection, however long it takes; `old` is the one that it is to replace."""
        why = old.why if old is not None else ""
        while True:
            if old is None or old.over:
                self._gone(why)
            await self._clock.sleep(self._pause())
            try:
                return await self._attempt()
            except SlackFailure as failure:
                self._tries += 1
                why = str(failure)

    async def _attempt(self) -> SocketConnection:
        await self._prepare()
        try:
            answer = await self._app.call("apps.connections.open", {}, self._clock)
        except SlackFailure as failure:
            if failure.passing:
                raise
            text = (
                f"{failure}; `appToken` must be an app-level token of this app with the scope "
                "connections:write, and Socket Mode must be on in its settings"
            )
            raise SlackFailure(text, failure.code) from None
        url = str(answer.get("url"))
        new = await dial(url, self._app.name, self._clock, self._log)
        self.reached = True
        self._connections = [each for each in self._connections if not each.closed] + [new]
        return new

    def _pause(self) -> float:
        """Seconds before the next attempt: none after a good connection."""
        if self._tries <= 1:
            # One that broke early may be an accident, two are not.
            return 0.0
        # Not the least of both: after a night of attempts the power is too large for a float.
        longest = LONGEST if self._tries > 6 else 2.0 ** (self._tries - 2)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret

    def _gone(self, why: str) -> None:
        if self._away_since is None:
            self._away_since = self._clock.monotonic()
            self._log.warning("slack is away; it is tried until it is back", error=why)

    def _back(self) -> None:
        if self._away_since is not None:
            seconds = round(self._clock.monotonic() - self._away_since, 1)
            self._away_since = None
            self._log.info("slack is back", after=seconds)

    def _ended(self, keeping: asyncio.Task[None]) -> None:
        if not keeping.cancelled() and (error := keeping.exception()) is not None:
            self._log.error("Socket Mode has ended", error=describe(error))
