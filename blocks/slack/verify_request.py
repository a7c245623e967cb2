"""`slack-verify-request`: let nothing through that Slack has not signed."""

from __future__ import annotations

import json

from pydantic import Field

from blocks.slack.posting import CallSettings
from flowrt.connectors.slack.connector import SlackConnector
from flowrt.engine.block import Block
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import FlowError
from flowrt.message import Message, clean
from flowrt.observe.flood import Trickle
from flowrt.observe.log import get_logger
from flowrt.slack.signature import (
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    BadSignature,
    check_signature,
)


class SlackVerifyRequestSettings(CallSettings):
    """Settings of `slack-verify-request`."""

    signature_header: str = Field(
        default=SIGNATURE_HEADER, min_length=1, description="The variable with the signature."
    )
    timestamp_header: str = Field(
        default=TIMESTAMP_HEADER, min_length=1, description="The variable with the time."
    )
    raw_body_var: str = Field(
        default="rawBody", min_length=1, description="The variable with the body as it came."
    )


class SlackVerifyRequest(Block[SlackVerifyRequestSettings]):
    """Fails unless the request was signed by Slack within the last five minutes.

    The source must list both headers and give the body as it came: `rawBodyVar: rawBody`, or
    `rawBody: true`, whose raw content becomes the JSON it holds. `vars.slackChallenge` is true for
    a `url_verification`, which is answered with its `challenge`.

    ```yaml
    - type: slack-verify-request
      connector: team
    ```
    """

    Settings = SlackVerifyRequestSettings

    def __init__(self, settings: SlackVerifyRequestSettings, site: Site) -> None:
        super().__init__(settings, site)
        connector = site.connector(settings.connector, SlackConnector, "a slack connector")
        secret = connector.settings.signing_secret
        if secret is None:
            raise site.refuse(
                ("connector",),
                f"slack-verify-request needs a signing secret, connector {connector.name!r} has "
                "none",
                "give it `signingSecret`",
            )
        self._secret = secret
        self._log = Trickle(get_logger(site.address))

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        body = self._bytes(message)
        timestamp = str(message.vars.get(settings.timestamp_header) or "")
        signature = str(message.vars.get(settings.signature_header) or "")
        try:
            check_signature(self._secret, timestamp, signature, body, run.clock.now().timestamp())
        except BadSignature as bad:
            self._log.warning("a request was refused", error=str(bad), skew=bad.skew)
            raise FlowError(str(bad)) from None
        if message.raw:
            try:
                message.body = clean(json.loads(body))
            except (ValueError, RecursionError) as error:
                raise FlowError(f"the body is signed, and no JSON: {error}") from None
            message.raw = False
        challenge = isinstance(message.body, dict) and message.body.get("type")
        message.set("slackChallenge", challenge == "url_verification")
        return message

    def _bytes(self, message: Message) -> bytes:
        if message.raw:
            return str(message.body["rawData"]).encode()
        raw = message.vars.get(self.settings.raw_body_var)
        if not isinstance(raw, str):
            raise FlowError(
                f"vars.{self.settings.raw_body_var} is not the body as it came; give the source "
                f"`rawBodyVar: {self.settings.raw_body_var}`, or `rawBody: true`"
            )
        return raw.encode()
