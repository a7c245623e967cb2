"""What `encrypt` and `decrypt` share: their settings, and where the result goes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from flowrt.connectors.crypto import CryptoConnector
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.site import Site
from flowrt.message import Message


class CryptoBlockSettings(Settings):
    """Settings of `encrypt` and `decrypt`."""

    crypto: str = Field(min_length=1, description="The `crypto` connector.")
    value: Expr | None = Field(default=None, description="The value; without it, the body.")
    encoding: Literal["base64", "hex"] = Field(
        default="base64", description="How what is sealed is written."
    )
    target: str | None = Field(
        default=None, min_length=1, description="The variable for the result; else the body."
    )


class CryptoBlock(Block[CryptoBlockSettings]):
    """A block that uses a key."""

    Settings = CryptoBlockSettings

    def __init__(self, settings: CryptoBlockSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._crypto = site.connector(
            settings.crypto, CryptoConnector, "a crypto connector", ("crypto",)
        )

    def _value(self, message: Message) -> Any:
        if self.settings.value is not None:
            return self.settings.value.value(message)
        return message.body["rawData"] if message.raw else message.body

    def _fold(self, message: Message, text: str) -> Message:
        if self.settings.target is not None:
            message.set(self.settings.target, text)
        else:
            message.body = text
            message.raw = False
            message.body_schema = None
        return message
