"""One connection of Socket Mode: dialled, read, acknowledged, left. Needs the extra `slack`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from flowrt.clock import Clock
from flowrt.connectors.slack.client import SlackFailure
from flowrt.errors import describe
from flowrt.message import clean
from flowrt.observe.flood import Flood
from flowrt.observe.log import Logger

if TYPE_CHECKING:
    from aiohttp import ClientSession, ClientWebSocketResponse

Take = Callable[[dict[str, Any]], Awaitable[bool]]
"""Takes an envelope; whether it is to be acknowledged. Slack sends the others again."""

DIALLING = 30.0
"""Seconds from the call to Slack's `hello`."""
QUIET = 15.0
"""Seconds without a frame after which a connection is pinged, and after as many again replaced.

Slack pings more often than that. Its pongs may take longer than five seconds.
"""
LINGER = 30.0
"""Seconds that a connection is still read after its successor is there. Slack sends `warning` ten
seconds before it closes one."""
CLOSING = 2.0
"""Seconds for the other side to say goodbye as well."""
MOST_WAITING = 1000
"""Envelopes that wait to be taken; Slack gives up on one after three seconds and sends it again."""


async def dial(
    session: ClientSession, url: str, proxy: str | None, clock: Clock, log: Logger
) -> SocketConnection:
    """A connection on which Slack has said `hello`. Raises `SlackFailure`."""
    import aiohttp

    try:
        async with asyncio.timeout(DIALLING):
            socket = await session.ws_connect(
                url,
                proxy=proxy,
                autoping=False,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSING),
            )
            try:
                hello = await _greeting(socket)
            except BaseException:
                await socket.close()
                raise
    except TimeoutError:
        text = f"slack's WebSocket did not say hello within {DIALLING:g}s"
        raise SlackFailure(text, "timeout") from None
    except aiohttp.WSServerHandshakeError as error:
        # Not its own text: that has the URL, whose ticket is a secret.
        text = f"slack's WebSocket was refused with status {error.status}"
        raise SlackFailure(text, "unreachable") from None
    except (aiohttp.ClientError, OSError) as error:
        text = f"slack's WebSocket was not reached: {error}"
        raise SlackFailure(text, "unreachable") from error
    log.info("connected to slack", connections=hello.get("num_connections"))
    return SocketConnection(socket, clock, log)


async def _greeting(socket: ClientWebSocketResponse) -> dict[str, Any]:
    """Slack's `hello`. Raises `SlackFailure` where it says something else."""
    from aiohttp import WSMsgType

    async for frame in socket:
        if frame.type is WSMsgType.PING:
            await socket.pong(frame.data)
            continue
        said = _decoded(frame.data) if frame.type is WSMsgType.TEXT else {}
        if said.get("type") == "hello":
            return said
        reason = str(said.get("reason") or said.get("type") or "no hello")
        code = reason if reason == "link_disabled" else "unreachable"
        raise SlackFailure(f"slack closed the new WebSocket at once: {reason}", code)
    raise SlackFailure("slack's WebSocket was closed before its hello", "unreachable")


class SocketConnection:
    """A connection from its `hello` on.

    `spent` is set once a successor is needed, and `why` says for what reason. `over`: nothing comes
    on it any more, so that without a successor there is no connection.
    """

    def __init__(self, socket: ClientWebSocketResponse, clock: Clock, log: Logger) -> None:
        self._socket = socket
        self._clock = clock
        self._log = log
        self._heard = self.born = clock.monotonic()
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
                self._end("the connection was closed")
                watching.cancel()
                self._waiting.put_nowait(None)
        finally:
            self._flood.flush()
            await self._socket.close()

    async def leave(self) -> None:
        """Take what Slack has still sent here, then close."""
        if not self.over:
            await self._clock.sleep(LINGER)
        await self._socket.close()

    async def _receive(self) -> None:
        from aiohttp import WSMsgType

        async for frame in self._socket:
            self._heard = self._clock.monotonic()
            if frame.type is WSMsgType.PING:
                await self._send(self._socket.pong(frame.data))
            elif frame.type is WSMsgType.TEXT:
                self._read(_decoded(frame.data))
            elif frame.type is WSMsgType.ERROR:
                self._end(f"the connection broke: {describe(frame.data)}")

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
                answer = json.dumps({"envelope_id": envelope["envelope_id"]})
                await self._send(self._socket.send_str(answer))

    async def _watch(self) -> None:
        while True:
            await self._clock.sleep(QUIET)
            quiet = self._clock.monotonic() - self._heard
            if quiet >= 2 * QUIET:
                self._end(f"nothing was heard for {quiet:.0f}s")
                return
            if quiet >= QUIET:
                await self._send(self._socket.ping())

    async def _send(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except ConnectionResetError as error:
            # What was not acknowledged comes again, and is known then.
            self._end(f"the connection broke: {error}")

    def _end(self, why: str) -> None:
        self.over = True
        self._spend(why)

    def _spend(self, why: str) -> None:
        self.why = self.why or why
        self.spent.set()


def _decoded(text: str) -> dict[str, Any]:
    """A message of Slack's; empty where it is no JSON object."""
    try:
        said = clean(json.loads(text, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _no_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
