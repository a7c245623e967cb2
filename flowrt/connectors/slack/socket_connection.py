"""One connection of Socket Mode: dialled, read, acknowledged, left. Needs the extra `slack`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from flowrt.clock import Clock
from flowrt.connectors.slack.client import SlackFailure
from flowrt.errors import describe
from flowrt.message import clean
from flowrt.observe.flood import Flood
from flowrt.observe.log import Logger

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

Take = Callable[[dict[str, Any]], Awaitable[bool]]
"""Takes an envelope; whether it is to be acknowledged. Slack sends the others again."""

DIALLING = 30.0
"""Seconds from the call to Slack's `hello`."""
QUIET = 15.0
"""Seconds between two pings, and for which a pong may be out: Slack's may take more than five."""
LINGER = 30.0
"""Seconds that a connection is still read after its successor is there. Slack sends `warning` ten
seconds before it closes one."""
CLOSING = 2.0
"""Seconds for the other side to say goodbye as well."""
MOST_WAITING = 1000
"""Envelopes that wait to be taken; Slack gives up on one after three seconds and sends it again."""


async def dial(url: str, name: str, clock: Clock, log: Logger) -> SocketConnection:
    """A connection on which Slack has said `hello`. `name` is the connector's.

    Raises `SlackFailure`.
    """
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus, WebSocketException

    where = f"connector {name!r}: slack's WebSocket"
    try:
        async with asyncio.timeout(DIALLING):
            socket = await connect(
                url, compression=None, open_timeout=None, ping_interval=None, close_timeout=CLOSING
            )
            try:
                hello = _decoded(await socket.recv())
                if hello.get("type") != "hello":
                    raise _turned_away(hello, name)
            except BaseException:
                await socket.close()
                raise
    except TimeoutError:
        text = f"{where} did not say hello within {DIALLING:g}s"
        raise SlackFailure(text, "timeout") from None
    except InvalidStatus as error:
        text = f"{where} was refused with status {error.response.status_code}"
        raise SlackFailure(text, "unreachable") from None
    except (WebSocketException, OSError) as error:
        # Its type and not its text: that may have the URL, whose ticket is a secret.
        text = f"{where} was not reached: {type(error).__name__}"
        raise SlackFailure(text, "unreachable") from None
    log.info("connected to slack", connections=hello.get("num_connections"))
    return SocketConnection(socket, clock, log)


def _turned_away(said: dict[str, Any], name: str) -> SlackFailure:
    reason = str(said.get("reason") or said.get("type"))
    # Socket Mode is off in the app's settings; nothing else takes somebody to mend it.
    code = reason if reason == "link_disabled" else "unreachable"
    text = f"connector {name!r}: slack closed the new WebSocket at once: {reason}"
    return SlackFailure(text, code)


class SocketConnection:
    """A connection from its `hello` on.

    `spent` is set once a successor is needed, and `why` says for what reason. `over`: nothing comes
    on it any more, so that without a successor there is no connection.
    """

    def __init__(self, socket: ClientConnection, clock: Clock, log: Logger) -> None:
        self._socket = socket
        self._clock = clock
        self._log = log
        self.born = clock.monotonic()
        self._waiting: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._flood = Flood(log, "envelopes were sent back to Slack: too many wait to be taken")
        self.spent = asyncio.Event()
        self.why = ""
        self.over = False

    async def serve(self, take: Take) -> None:
        """Take envelopes, in order, and acknowledge them, until the connection is closed."""
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watch())
                tasks.create_task(self._work(take))
                await self._receive()
                watching.cancel()
                self._waiting.put_nowait(None)
        finally:
            self._flood.flush()

    @property
    def closed(self) -> bool:
        """Whether both sides have let go of it."""
        return self._socket.close_code is not None

    async def close(self) -> None:
        """Say goodbye, and wait `CLOSING` at most for the other side to do so."""
        await self._socket.close()

    async def leave(self) -> None:
        """Take what Slack has still sent here, then close."""
        if not self.over:
            await self._clock.sleep(LINGER)
        await self.close()

    async def _receive(self) -> None:
        from websockets.exceptions import ConnectionClosed

        why = "the connection was closed"
        try:
            async for text in self._socket:
                self._read(_decoded(text))
        except ConnectionClosed as error:
            why = f"the connection broke: {error}"
        self._end(why)

    def _read(self, said: dict[str, Any]) -> None:
        if said.get("type") == "disconnect":
            self._spend(f"slack asks for it: {said.get('reason')}")
        elif not isinstance(said.get("envelope_id"), str):
            self._log.warning("slack sent a message without an envelope", type=said.get("type"))
        elif self._waiting.qsize() >= MOST_WAITING:
            self._flood.note()
        else:
            self._waiting.put_nowait(said)

    async def _work(self, take: Take) -> None:
        """One after the other: a mention opens the thread that the next post goes on in."""
        while (envelope := await self._waiting.get()) is not None:
            try:
                taken = await take(envelope)
            except Exception as error:  # noqa: BLE001 - costs this envelope and not the connection
                self._log.error("an envelope of slack's failed", error=describe(error))
                taken = False
            if taken:
                await self._acknowledge(envelope["envelope_id"])

    async def _acknowledge(self, envelope_id: str) -> None:
        from websockets.exceptions import ConnectionClosed

        # What cannot be acknowledged any more comes again, and is known then.
        with suppress(ConnectionClosed):
            await self._socket.send(json.dumps({"envelope_id": envelope_id}))

    async def _watch(self) -> None:
        from websockets.exceptions import ConnectionClosed

        while True:
            await self._clock.sleep(QUIET)
            try:
                pong = asyncio.ensure_future(await self._socket.ping())
            except ConnectionClosed:
                return
            await self._clock.sleep(QUIET)
            if not pong.done():
                self._end(f"a ping had no answer within {QUIET:g}s")
                return

    def _end(self, why: str) -> None:
        self.over = True
        self._spend(why)

    def _spend(self, why: str) -> None:
        self.why = self.why or why
        self.spent.set()


def _decoded(text: str | bytes) -> dict[str, Any]:
    """A message of Slack's; empty where it is no JSON object."""
    try:
        said = clean(json.loads(text, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _no_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
