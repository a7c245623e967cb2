"""The Events API: events as signed requests to a path of an `http` connector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowrt.connectors.http import HttpConnector
from flowrt.connectors.http_answer import SOON, Answer
from flowrt.connectors.slack.connector import SlackConnector
from flowrt.engine.site import Refusal
from flowrt.observe.flood import Flood
from flowrt.observe.log import Logger
from flowrt.slack.signature import (
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    BadSignature,
    check_signature,
)
from flowrt.sources.http_request import (
    Gone,
    Headers,
    Refused,
    Stopped,
    header,
    read_body,
    read_json,
)
from flowrt.sources.slack_intake import Intake
from flowrt.sources.slack_ledger import NotTaken

if TYPE_CHECKING:
    from flowrt.engine.run import Runtime

MOST_BODY = 1024 * 1024
TAKEN = Answer(200, [])


class Requests:
    """An endpoint that verifies each request, and answers it at once."""

    not_ready = ""

    def __init__(
        self, slack: SlackConnector, server: HttpConnector, intake: Intake, log: Logger
    ) -> None:
        settings = intake.settings
        if slack.settings.signing_secret is None:
            raise Refusal(
                (),
                f"the source needs a signing secret, connector {slack.name!r} has none",
                "give it `signingSecret`, or the source `mode: socket`",
            )
        if settings.http is not None and settings.http != server.name:
            raise Refusal(
                ("http",),
                f'connector "{settings.http}" is not an http connector of this service',
                f"write {server.name!r}, or leave it out",
            )
        self._slack, self._server, self._intake = slack, server, intake
        self._secret = slack.settings.signing_secret
        self._refused = Flood(log, "requests were refused: they are not signed by Slack")
        self.path = server.settings.base_path + settings.path
        self.methods: tuple[str, ...] = ("POST",)
        if taken := server.mount(self):
            raise Refusal(
                ("path",),
                f"another flow has {taken} of connector {server.name!r}",
                "give one of them another path",
            )

    async def start(self, runtime: Runtime) -> None:
        """Listen. Raises `ConnectorError`."""
        self._clock = runtime.clock
        self._intake.start(runtime, await self._slack.identity(runtime.clock))
        self._server.serve()

    async def stop(self) -> None:
        """Refuse everything; the server itself stops with the service."""
        self._intake.stop()
        self._refused.flush()

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request of Slack's."""
        data = None
        try:
            self._admit()
            patience = self._server.settings.read_timeout
            data = await read_body(scope, receive, MOST_BODY, patience, self._server.slow)
            self._admit()
            answer = await self._answer(scope["headers"], data)
        except Stopped:
            await self._server.answer_late(scope, data, receive, send)
            return
        except NotTaken as reason:
            if not self._intake.is_open:
                await self._server.answer_late(scope, data, receive, send)
                return
            answer = Refused(503, str(reason), SOON).answer
        except Refused as refused:
            answer = refused.answer
        except Gone:
            return
        await answer.send(send)

    def _admit(self) -> None:
        if not self._intake.is_open:
            raise Stopped

    async def _answer(self, headers: Headers, data: bytes) -> Answer:
        self._verify(headers, data, self._clock.now().timestamp())
        envelope = read_json(data)
        if not isinstance(envelope, dict):
            raise Refused(400, "the body is no object")
        if envelope.get("type") == "url_verification":
            challenge = str(envelope.get("challenge") or "")
            return Answer(200, [(b"content-type", b"text/plain")], challenge.encode())
        if envelope.get("type") == "event_callback":
            await self._intake.take(envelope)
        return TAKEN

    def _verify(self, headers: Headers, data: bytes, now: float) -> None:
        timestamp = header(headers, TIMESTAMP_HEADER.lower().encode())
        signature = header(headers, SIGNATURE_HEADER.lower().encode())
        try:
            check_signature(self._secret, timestamp, signature, data, now)
        except BadSignature as bad:
            self._refused.note(error=str(bad), skew=bad.skew)
            raise Refused(401, str(bad)) from None
