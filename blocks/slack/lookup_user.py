"""`slack-lookup-user`: who a user is."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from blocks.slack.posting import CallSettings, tolerate
from flowrt.connectors.slack.client import SlackFailure
from flowrt.connectors.slack.connector import SlackConnector
from flowrt.engine.block import Block
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.message import Message


class SlackLookupUserSettings(CallSettings):
    """Settings of `slack-lookup-user`."""

    by: Literal["email", "id"] | None = Field(
        default=None, description="What is known of the user; unset, whichever is given."
    )
    email: Expr | None = Field(default=None, description="The address.")
    user: Expr | None = Field(default=None, description="The user's id.")
    result_var: str = Field(
        default="slackUser", min_length=1, description="The variable for the user."
    )
    fail_on_error: bool = Field(
        default=True,
        description="Fail where Slack refuses; else the variable is null and `vars.slackError` "
        "says why, null where not.",
    )


class SlackLookupUser(Block[SlackLookupUserSettings]):
    """Sets a variable to Slack's whole user object: `name`, `tz`, `profile` and so on.

    ```yaml
    - type: slack-lookup-user
      connector: team
      by: id
      user: vars.slack.user
    ```
    """

    Settings = SlackLookupUserSettings

    def __init__(self, settings: SlackLookupUserSettings, site: Site) -> None:
        super().__init__(settings, site)
        by = settings.by or ("email" if settings.email is not None else "id")
        wanted = settings.email if by == "email" else settings.user
        if wanted is None:
            key = "email" if by == "email" else "user"
            raise site.refuse((), f"slack-lookup-user by {by} needs `{key}`", f"write `{key}:`")
        self._by = by
        self._wanted = wanted
        self._client = site.connector(
            settings.connector, SlackConnector, "a slack connector"
        ).client

    async def run(self, message: Message, run: Run) -> Message:
        wanted = self._wanted.key(message, f"slack-lookup-user {self._by}")
        method, name = "users.info", "user"
        if self._by == "email":
            method, name = "users.lookupByEmail", "email"
        user = None
        try:
            user = (await self._client.call(method, {name: wanted}, run.clock)).get("user")
        except SlackFailure as failure:
            if self.settings.fail_on_error:
                raise
            tolerate(failure, message)
        else:
            if not self.settings.fail_on_error:
                message.set("slackError", None)
        message.set(self.settings.result_var, user)
        return message
