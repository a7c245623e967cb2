"""`slack`: a Slack app, by its bot token."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from flowrt.clock import Clock
from flowrt.connectors.slack.client import SlackClient
from flowrt.connectors.slack.progress import Progress
from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.engine.fields import Duration
from flowrt.errors import ConnectorError


def _url(value: str) -> str:
    if not value.startswith(("https://", "http://")):
        raise PydanticCustomError(
            "url", "expected an http or https URL, found {found}", {"found": repr(value)}
        )
    return value


def _app_token(token: str) -> str:
    # Not shown: what stands here instead is most often the bot token.
    if not token.startswith("xapp-"):
        raise PydanticCustomError(
            "app_token",
            "expected an app-level token, which begins with xapp-; it is made under Basic "
            "Information, App-Level Tokens, with the scope connections:write",
        )
    return token


class SlackSettings(Settings):
    """Settings of the connector `slack`."""

    bot_token: str = Field(min_length=1, description="The app's bot token, `xoxb-…`.")
    signing_secret: str | None = Field(
        default=None,
        min_length=1,
        description="What Slack signs its requests with; needed to receive them.",
    )
    app_token: Annotated[str, AfterValidator(_app_token)] | None = Field(
        default=None,
        description="The app-level token, `xapp-…`; needed for sources with `mode: socket`.",
    )
    api_base_url: Annotated[str, AfterValidator(_url)] = Field(
        default="https://slack.com/api/",
        alias="apiBaseURL",
        description="Where the Web API is, such as that of a fake.",
    )
    timeout: Duration = Field(default=30.0, description="How long a call may take; 0 for ever.")


class SlackConnector(Connector[SlackSettings]):
    """A Slack app: what the `slack` source and the `slack-…` blocks act as.

    Calls of one method to one channel keep their order; where Slack asks to wait (429) they do, up
    to two minutes. Needs `pip install 'flowrt[slack]'`.

    ```yaml
    connectors:
      - name: team
        type: slack
        settings:
          botToken: ${SLACK_BOT_TOKEN}
          signingSecret: ${SLACK_SIGNING_SECRET}
    ```
    """

    Settings = SlackSettings

    def __init__(self, name: str, settings: SlackSettings) -> None:
        super().__init__(name, settings)
        self.client = SlackClient(name, settings.bot_token, settings.api_base_url, settings.timeout)
        self.app: SlackClient | None = None
        """Calls for the app itself, with its app-level token."""
        if settings.app_token is not None:
            self.app = SlackClient(
                name, settings.app_token, settings.api_base_url, settings.timeout
            )
        self._listener: str | None = None
        self.progress = Progress(self.client)
        self._identity: dict[str, str] | None = None

    def listen(self, flow: str) -> str | None:
        """Give a flow the events of Socket Mode, at load; or say which one has them already."""
        if self._listener is None:
            self._listener = flow
            return None
        return self._listener

    async def start(self) -> None:
        # Imported at the first call: a quarter of a second that a flow without one does not pay.
        for package in ("slack_sdk", "aiohttp", "markdown_it", "websockets"):
            if find_spec(package) is None:
                raise ConnectorError(
                    f"connector {self.name!r}: slack needs {package}, which is not installed; "
                    "pip install 'flowrt[slack]'"
                )

    async def identity(self, clock: Clock) -> dict[str, str]:
        """Who the app is: `user_id`, `bot_id`, `team_id`. Asked once. Raises `SlackFailure`."""
        if self._identity is None:
            self._identity = await self.client.call("auth.test", {}, clock)
        return self._identity

    async def stop(self) -> None:
        self._identity = None
        self.progress = Progress(self.client)
        await self.client.close()
        if self.app is not None:
            await self.app.close()
