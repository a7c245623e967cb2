"""One request on its way through a flow."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from flowrt.connectors.http_answer import Answer, refusal
from flowrt.engine.source import Deliver
from flowrt.errors import FlowError
from flowrt.message import Message
from flowrt.observe.log import Logger
from flowrt.sources.http_gate import Gate
from flowrt.sources.http_response import answer_of, failed

CUT_OFF = refusal(503, "the service was stopped before the flow had ended")


class Turn:
    """Runs a message and keeps how that ended: `refused`, else `result`, None where dropped.

    `limit` is in seconds, 0 for none, and ends the flow; a stream that has begun takes it off.
    """

    __slots__ = ("_clock", "_limit", "_log", "ended", "message", "name", "refused", "result")

    def __init__(self, message: Message, flow: str, limit: float, log: Logger) -> None:
        self.message = message
        self.name = f"http request {message.event_id} to {flow}"
        self.result: Message | None = None
        # Stands where the run is cut off, even before it has begun.
        self.refused: Answer | None = CUT_OFF
        self.ended = False
        self._limit = limit
        self._log = log
        self._clock: asyncio.Timeout | None = None

    async def run(self, deliver: Deliver, gate: Gate) -> None:
        """Wait for a place and work; the place to wait is given up in any case."""
        try:
            async with asyncio.timeout(self._limit or None) as self._clock, gate:
                self.result = await deliver(self.message)
            self.refused = None
        except TimeoutError:
            text = f"the flow took longer than {self._limit:g}s"
            self._log.error("a request took too long", event_id=self.message.event_id, error=text)
            self.refused = refusal(504, text)
        except FlowError as error:
            self._log.error("a request failed", event_id=self.message.event_id, error=str(error))
            self.refused = failed(str(error))
        finally:
            self.ended = True
            gate.leave()

    def settle(self, task: asyncio.Task[None]) -> None:
        """Take note of a fault of our own, which the service has logged."""
        if not task.cancelled() and task.exception() is not None:
            self.refused = failed("an error inside of the service; its log says which")

    def answer(self, header_names: Sequence[str]) -> Answer:
        """What the client gets, once it has ended."""
        if self.refused is not None:
            return self.refused
        if self.result is None:
            return Answer(204, [])
        return answer_of(self.result, header_names, self._log)

    def take_all_the_time(self) -> None:
        """Take the limit off."""
        # Where it has just run out, there is nothing to take off any more.
        if self._clock is not None and not self.ended and not self._clock.expired():
            self._clock.reschedule(None)
