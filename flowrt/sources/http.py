"""The source `http`: a flow as an HTTP endpoint."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from flowrt.connectors.http import HttpConnector
from flowrt.connectors.http_answer import SOON
from flowrt.engine.site import Refusal
from flowrt.engine.source import LISTENERS, Deliver, Source, SourceSite
from flowrt.observe.flood import Trickle
from flowrt.observe.log import get_logger
from flowrt.sources.http_gate import Gate
from flowrt.sources.http_request import Gone, Reader, Refused, Stopped, read_body
from flowrt.sources.http_settings import HttpSourceSettings
from flowrt.sources.http_sse import Streaming
from flowrt.sources.http_turn import Turn

if TYPE_CHECKING:
    from flowrt.engine.run import Runtime


class Http(Source[HttpSourceSettings]):
    """Sends a flow the requests to a path, and answers with what it ends with.

    `vars.method`, `vars.query`, the names of the path and the listed headers come with the JSON
    body. A completed flow answers 200 or `vars.httpStatus`, a dropped message 204, a failed one
    500. The flow's `workers` (8) are how many requests are worked on, its `buffer` how many wait;
    beyond that the answer is 503. A client that leaves does not end the flow.

    ```yaml
    source:
      type: http
      settings:
        path: /orders/{id}
        methods: [POST]
        headers: [X-Tenant]
    ```
    """

    Settings = HttpSourceSettings

    def __init__(self, settings: HttpSourceSettings, site: SourceSite) -> None:
        super().__init__(settings, site)
        assert isinstance(site.connector, HttpConnector)
        self.connector = site.connector
        self.path = self.connector.settings.base_path + settings.path
        self.methods: tuple[str, ...] = tuple(settings.methods)
        # Requests that fail cost their sender nothing: ten thousand of them are not as many lines.
        self._log = Trickle(get_logger(f"flowrt.sources.{site.flow}"))
        self._reader = Reader(settings)
        timeout = settings.timeout
        self._limit = self.connector.settings.request_timeout if timeout is None else timeout
        self._streaming = Streaming(settings, self.connector, self._log)
        self._streams = settings.sse.enabled
        self._open: tuple[Deliver, Runtime, Gate] | None = None
        if taken := self.connector.mount(self):
            raise Refusal(
                ("path",),
                f"another flow has {taken} of connector {self.connector.name!r}",
                "give one of them another path or other methods",
            )

    async def start(self, deliver: Deliver, runtime: Runtime) -> None:
        gate = Gate(self.site.workers or LISTENERS, self.site.buffer, self._log)
        self._open = (deliver, runtime, gate)
        self.connector.serve()

    async def stop(self) -> None:
        if self._open is not None:
            self._open[2].close()
        self._open = None
        await self._streaming.close_idle()
        self._log.flush()

    @property
    def waiting(self) -> int:
        """How many requests wait for a place to be worked on."""
        return self._open[2].waiting if self._open is not None else 0

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        data = None
        try:
            self._admitting()
            data = await read_body(
                scope,
                receive,
                self.settings.max_body_bytes,
                self.connector.settings.read_timeout,
                self.connector.slow,
            )
            turn = Turn(self._reader.message(scope, data), self.site.flow, self._limit, self._log)
            # Asked again: the body of a slow client has taken its time, and no place.
            deliver, runtime, gate = self._admitting()
            gate.enter()
        except Refused as refused:
            await refused.answer.send(send)
            return
        except Stopped:
            await self.connector.answer_late(scope, data, receive, send)
            return
        except Gone:
            return
        stream = self._streaming.open(turn, scope, send) if self._streams else None
        # In a task of the service's own: it ends whether the client waits for it or not.
        task = runtime.spawn(turn.run(deliver, gate), turn.name)
        if stream is not None:
            await self._streaming.follow(turn, stream, task, receive, send)
            return
        await asyncio.wait((task,))
        turn.settle(task)
        await turn.answer(self.settings.response_headers).send(send)

    def _admitting(self) -> tuple[Deliver, Runtime, Gate]:
        """What works on requests. Raises `Stopped`, and `Refused` where it is full."""
        if self._open is None:
            raise Stopped
        if self._open[2].full() or (self._streams and self._streaming.full()):
            raise Refused(503, "the service is busy", SOON)
        return self._open
