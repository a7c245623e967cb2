"""`log`: write a line."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from flowrt.connectors.logger import LoggerConnector
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.message import Message
from flowrt.observe.log import get_logger


class LogSettings(Settings):
    """Settings of `log`."""

    message: Expr | None = Field(
        default=None, description="What to write; without it, body and variables as JSON."
    )
    level: Literal["debug", "info", "warn", "error"] = Field(
        default="info", description="The line's level; `LOG_LEVEL` decides which are shown."
    )
    logger: str = Field(
        default="", description="A `logger` connector to write to; unset, standard error."
    )
    full: bool = Field(
        default=False, description="Add body and variables to the line beside `message`."
    )


class Log(Block[LogSettings]):
    """Writes a log line, on standard error or where `logger` says, and passes the message on.

    Secrets are masked.

    ```yaml
    - type: log
      message: '"order " + string(body.id)'
    ```
    """

    Settings = LogSettings

    def __init__(self, settings: LogSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._address = site.address
        self._own: LoggerConnector | None = None
        if settings.logger:
            self._own = site.connector(settings.logger, LoggerConnector, "a logger", ("logger",))
        logger = get_logger(site.address)
        self._write = {
            "debug": logger.debug,
            "info": logger.info,
            "warn": logger.warning,
            "error": logger.error,
        }[settings.level]

    async def run(self, message: Message, run: Run) -> Message:
        content = {"body": message.body, "vars": dict(message.vars)}
        fields: dict[str, Any] = {"event_id": message.event_id}
        if self.settings.message is None:
            text = json.dumps(content, ensure_ascii=False)
        else:
            text = self.settings.message.text(message)
            if self.settings.full:
                fields |= content
        if self._own is None:
            self._write(text, **fields)
        else:
            now = run.clock.now()
            self._own.write(self.settings.level, text, fields, source=self._address, now=now)
        return message
