"""The source `slack`: what people say to a Slack app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowrt.connectors.http import HttpConnector
from flowrt.connectors.slack.connector import SlackConnector
from flowrt.engine.source import Deliver, Source, SourceSite
from flowrt.observe.log import get_logger
from flowrt.sources.slack_intake import Intake
from flowrt.sources.slack_requests import Requests
from flowrt.sources.slack_settings import SlackSourceSettings
from flowrt.sources.slack_socket import Socket

if TYPE_CHECKING:
    from flowrt.engine.run import Runtime


class Slack(Source[SlackSourceSettings]):
    """Sends a flow what people say to the app, each post once.

    Slack sends signed requests to a path, or, with `mode: socket`, messages over a connection that
    the service opens. Each is answered at once, then the flow works. `vars.slack` is `{team,
    channel, user, ts, threadTs, threadId, isDirectMessage, mention, text}`, the body the event as
    `slack-event` makes it. The app's own posts, edits and deletions start nothing. Posts that came
    in are kept for two days, so that a restart or another replica does not answer them again.

    ```yaml
    source:
      type: slack
      settings:
        path: /slack/events
    ```
    """

    Settings = SlackSourceSettings

    @classmethod
    def listens_on(cls, settings: SlackSourceSettings) -> str | None:
        return "http" if settings.mode == "events" else None

    def __init__(self, settings: SlackSourceSettings, site: SourceSite) -> None:
        super().__init__(settings, site)
        assert isinstance(site.connector, SlackConnector)
        log = get_logger(f"flowrt.sources.{site.flow}")
        self._intake = Intake(settings, site, log)
        self._entrance: Requests | Socket
        if isinstance(site.server, HttpConnector):
            self._entrance = Requests(site.connector, site.server, self._intake, log)
        else:
            self._entrance = Socket(site.connector, self._intake, log)

    async def open(self, deliver: Deliver, runtime: Runtime) -> None:
        await self._intake.open(deliver, runtime)

    async def close(self) -> None:
        await self._intake.close()

    async def start(self, deliver: Deliver, runtime: Runtime) -> None:
        await self._entrance.start(runtime)

    async def stop(self) -> None:
        await self._entrance.stop()

    @property
    def not_ready(self) -> str:
        return self._entrance.not_ready
