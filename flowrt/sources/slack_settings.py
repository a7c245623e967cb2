"""The settings of the source `slack`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from flowrt.engine.block import Settings
from flowrt.sources.http_settings import parameters


def _path(path: str) -> str:
    if not path.startswith("/") or parameters(path) or any(mark in path for mark in " ?#{}"):
        raise PydanticCustomError("path", "expected a path such as /slack/events")
    return path


class SlackSourceSettings(Settings):
    """Settings of the source `slack`."""

    mode: Literal["events", "socket"] = Field(
        default="events",
        description="`events`: Slack sends requests (Events API); `socket`: the service opens a "
        "connection to Slack, with the connector's `appToken` (Socket Mode).",
    )
    path: Annotated[str, AfterValidator(_path)] = Field(
        default="/slack/events", description="Where Slack sends requests."
    )
    http: str | None = Field(
        default=None, min_length=1, description="The `http` connector, where there are several."
    )
    respond_to: Literal["addressed", "all"] = Field(
        default="addressed",
        description="`addressed`: direct messages, mentions, and what is said in threads that a "
        "mention or the app has opened; `all`: everything in the channels that the app is in.",
    )
    bots: bool = Field(default=False, description="Take the posts of other bots too.")
    max_bot_turns: int = Field(
        default=3, ge=1, description="How many of them in a thread, until a person says something."
    )
