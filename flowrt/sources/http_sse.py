"""Answers of the source `http` that are streams (dialect 6.1, `sse`)."""

from __future__ import annotations

import asyncio
from typing import Any

from flowrt.connectors.http import HttpConnector, end
from flowrt.connectors.http_stream import ABORT, EventStream
from flowrt.engine.streams import StreamClosed
from flowrt.message import Message
from flowrt.observe.flood import Flood
from flowrt.observe.log import Logger
from flowrt.sources.http_response import as_json, response_headers
from flowrt.sources.http_settings import HttpSourceSettings
from flowrt.sources.http_turn import Turn


class Streaming:
    """Opens the streams of one source, looks after them, and ends them."""

    def __init__(self, settings: HttpSourceSettings, connector: HttpConnector, log: Logger) -> None:
        self._settings = settings.sse
        self._header_names = settings.response_headers
        self._connector = connector
        self._log = log
        self._streams: dict[EventStream, Turn] = {}
        self._sent_away = Flood(log, "requests were answered with 503: too many streams")

    def full(self) -> bool:
        """Whether there is no room for one more; that is counted in a log line."""
        if len(self._streams) < self._settings.max_streams:
            return False
        self._sent_away.note(max_streams=self._settings.max_streams)
        return True

    def open(self, turn: Turn, scope: Any, send: Any) -> EventStream:
        """A stream for the request, its address in the message."""
        message = turn.message
        stream = EventStream(
            send,
            patience=self._connector.settings.write_timeout,
            abort=scope["state"][ABORT],
            headers=lambda: response_headers(message, self._header_names, self._log),
            committing=turn.take_all_the_time,
        )
        message.set(self._settings.stream_var, self._connector.hold(stream))
        self._streams[stream] = turn
        return stream

    async def follow(
        self, turn: Turn, stream: EventStream, task: asyncio.Task[None], receive: Any, send: Any
    ) -> None:
        """Stay until the answer is out: a stream, or an ordinary one where nothing was written."""
        tending = asyncio.create_task(self._tend(stream, receive), name=f"{turn.name}, stream")
        try:
            await asyncio.wait((task,))
            turn.settle(task)
            if stream.committed or self._stays_open(turn, stream):
                await self._end(turn, stream)
                return
            stream.leave()
            await turn.answer(self._header_names).send(send)
        except StreamClosed:
            pass  # nobody is there to be told
        finally:
            tending.cancel()
            del self._streams[stream]
            self._connector.release(stream)

    async def close_idle(self) -> None:
        """End the streams whose flows have ended: nobody is going to."""
        self._sent_away.flush()
        for stream, turn in list(self._streams.items()):
            if turn.ended:
                await end(stream)

    def _stays_open(self, turn: Turn, stream: EventStream) -> bool:
        """Whether others are to write to a stream that the flow has left as it was.

        Not where the flow has answered for itself: a check that refused, say.
        """
        if self._settings.close_on_complete or turn.result is None or stream.closed:
            return False
        return turn.result.vars.get("httpStatus") is None

    async def _end(self, turn: Turn, stream: EventStream) -> None:
        if turn.refused is not None:
            await stream.write("error", turn.refused.body.decode())
        elif turn.result is not None and not stream.closed:
            if self._settings.final_event:
                await stream.write(*self._final(turn.result))
            if not self._settings.close_on_complete:
                await stream.open()
                await stream.ended.wait()
        await stream.close()

    def _final(self, message: Message) -> tuple[str, str]:
        """The last event: text as it is, raw content as its text, anything else as JSON."""
        body = message.body
        if message.raw and isinstance(body, dict):
            body = body.get("rawData")
        return self._settings.final_event_name, body if isinstance(body, str) else as_json(body)

    async def _tend(self, stream: EventStream, receive: Any) -> None:
        """Until the client leaves: show now and then that the stream lives, and end an old one."""
        loop = asyncio.get_running_loop()
        longest = self._settings.max_duration
        until = loop.time() + longest if longest else None
        try:
            while not stream.closed:
                if await self._left(receive, until):
                    stream.leave()
                elif until is not None and loop.time() >= until:
                    await self._expire(stream, longest)
                elif stream.committed:
                    await stream.comment()
        except StreamClosed:
            pass  # ended in between

    async def _left(self, receive: Any, until: float | None) -> bool:
        """Wait for the client to leave, until it is time for something else."""
        loop = asyncio.get_running_loop()
        beat = self._settings.heartbeat
        times = [loop.time() + beat] if beat else []
        times += [until] if until is not None else []
        try:
            async with asyncio.timeout_at(min(times) if times else None):
                while (await receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return False
        return True

    async def _expire(self, stream: EventStream, longest: float) -> None:
        if stream.committed:
            text = f"the stream is older than {longest:g}s"
            await stream.write("error", as_json({"error": text}))
            await stream.close()
        else:
            stream.leave()
