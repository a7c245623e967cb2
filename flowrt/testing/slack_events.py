"""What Slack sends to an app: events, signed as Slack signs them."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

from flowrt.slack.signature import SIGNATURE_HEADER, TIMESTAMP_HEADER, sign

SIGNING_SECRET = "a-signing-secret"  # noqa: S105 - the fake's own
TEAM, BOT_USER, BOT_ID = "T1", "UBOT", "BBOT"


class SlackEvents:
    """Makes events and signs them.

    Each event has an id and, unless told, a time of its own; `fields` are added to it or replace
    what it has. `signed` gives the bytes and headers of the request.
    """

    def __init__(
        self, signing_secret: str = SIGNING_SECRET, *, team: str = TEAM, bot_user: str = BOT_USER
    ) -> None:
        self.signing_secret = signing_secret
        self.team = team
        self.bot_user = bot_user
        self._numbers = itertools.count(1)

    def message(
        self, text: str, *, channel: str = "C1", user: str = "U1", **fields: Any
    ) -> dict[str, Any]:
        """Something that is said in a channel."""
        return self.event("message", text, channel, user, {"channel_type": "channel", **fields})

    def mention(
        self, text: str, *, channel: str = "C1", user: str = "U1", **fields: Any
    ) -> dict[str, Any]:
        """The app is mentioned in a channel; Slack sends a `message` as well, at the same time."""
        return self.event("app_mention", f"<@{self.bot_user}> {text}", channel, user, fields)

    def direct(
        self, text: str, *, channel: str = "D1", user: str = "U1", **fields: Any
    ) -> dict[str, Any]:
        """A direct message to the app."""
        return self.event("message", text, channel, user, {"channel_type": "im", **fields})

    def event(
        self, type_: str, text: str, channel: str, user: str, fields: dict[str, Any]
    ) -> dict[str, Any]:
        """Any event about a post, in its envelope."""
        number = next(self._numbers)
        ts = f"{1_700_000_000 + number}.{number:06}"
        event = {"type": type_, "user": user, "text": text, "ts": ts, "channel": channel}
        return {
            "type": "event_callback",
            "team_id": self.team,
            "api_app_id": "A1",
            "event_id": f"Ev{number:08}",
            "event_time": 1_700_000_000 + number,
            "event": event | {"event_ts": ts, "team": self.team} | fields,
        }

    def signed(
        self, content: dict[str, Any] | bytes, *, at: float | None = None
    ) -> tuple[bytes, dict[str, str]]:
        """Body and headers of a request; `at` is its time in seconds since 1970, now if unset."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        timestamp = str(int(time.time() if at is None else at))
        return body, {
            "content-type": "application/json",
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: sign(self.signing_secret, timestamp, body),
        }
