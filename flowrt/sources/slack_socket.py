"""Socket Mode: events over a WebSocket that the service opens itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowrt.connectors.slack.connector import SlackConnector
from flowrt.connectors.slack.socket_mode import SocketMode
from flowrt.engine.site import Refusal
from flowrt.observe.log import Logger
from flowrt.sources.slack_intake import Intake
from flowrt.sources.slack_ledger import NotTaken

if TYPE_CHECKING:
    from flowrt.engine.run import Runtime

_OF_REQUESTS = ("path", "http")
"""Settings that mean nothing here."""


class Socket:
    """Acknowledges each envelope once its event is taken; Slack sends the others again."""

    def __init__(self, slack: SlackConnector, intake: Intake, log: Logger) -> None:
        for name in _OF_REQUESTS:
            if name in intake.settings.model_fields_set:
                raise Refusal(
                    (name,),
                    f"`{name}` is of `mode: events`; in Socket Mode nobody sends requests",
                    "leave it out",
                )
        if slack.app is None:
            raise Refusal(
                ("mode",),
                f"Socket Mode needs an app-level token, connector {slack.name!r} has none",
                "give it `appToken`",
            )
        if other := slack.listen(intake.site.flow):
            raise Refusal(
                ("mode",),
                f"flow {other!r} has the events of connector {slack.name!r} already, and Slack "
                "gives each event to one of them",
                "call one flow from the other by flow-ref",
            )
        self._slack, self._intake, self._log = slack, intake, log
        self._app = slack.app
        self._mode: SocketMode | None = None
        self._untaken: set[str] = set()

    @property
    def not_ready(self) -> str:
        """Empty from the first connection on: what comes later is made up for."""
        if self._mode is None or self._mode.reached:
            return ""
        return f"flow {self._intake.site.flow!r} has no connection to Slack yet"

    async def start(self, runtime: Runtime) -> None:
        """Connect. Raises `ConnectorError` where Slack refuses; where it is away, try on."""

        async def prepare() -> None:
            # Who the app is must be known before its first event comes, and stays known.
            identity = await self._slack.identity(runtime.clock)
            if not self._intake.is_open:
                self._intake.start(runtime, identity)

        self._mode = SocketMode(self._app, prepare, self._take, runtime.clock, self._log)
        await self._mode.start()

    async def stop(self) -> None:
        """Take nothing more, then close the connections."""
        self._intake.stop()
        if self._mode is not None:
            await self._mode.stop()
        self._mode = None

    async def _take(self, envelope: dict[str, Any]) -> bool:
        """Whether an envelope is to be acknowledged."""
        kind, payload = envelope.get("type"), envelope.get("payload")
        if kind != "events_api" or not isinstance(payload, dict):
            self._note_untaken(str(kind))
            return True
        try:
            await self._intake.take(payload)
        except NotTaken:
            return False
        return True

    def _note_untaken(self, kind: str) -> None:
        # Slack shows the user an error unless these are acknowledged too.
        if kind not in self._untaken:
            self._untaken.add(kind)
            self._log.warning("slack sends what no flow takes; it is acknowledged", type=kind)
