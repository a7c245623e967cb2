"""`logger`: another place for the lines of `log`."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from typing import Annotated, Any, Literal, TextIO

from pydantic import AfterValidator, Field, ValidationInfo

from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.errors import ConnectorError
from flowrt.observe.log import LEVELS
from flowrt.observe.masking import mask

Level = Literal["debug", "info", "warn", "error"]


def _beside_the_file(output: str, info: ValidationInfo) -> str:
    if output in ("stdout", "stderr") or info.context is None:
        return output
    return str(info.context.config.root / output)


class LoggerSettings(Settings):
    """Settings of `logger`."""

    output: Annotated[str, Field(min_length=1), AfterValidator(_beside_the_file)] = Field(
        default="stderr",
        description="`stdout`, `stderr` or a file; a relative one is beside the YAML file.",
    )
    format: Literal["text", "json"] = Field(default="text", description="How a line looks.")
    level: Level = Field(default="info", description="The lowest level that is written.")
    add_source: bool = Field(default=False, description="Add the address of the block.")


class LoggerConnector(Connector[LoggerSettings]):
    """Writes the lines of `log` blocks that name it. Secrets are masked.

    A file is appended to, and made for its owner only (0600); its folder must exist.

    ```yaml
    connectors:
      - name: audit
        type: logger
        settings:
          output: audit.log
          format: json
    ```
    """

    Settings = LoggerSettings

    def __init__(self, name: str, settings: LoggerSettings) -> None:
        super().__init__(name, settings)
        self._file: TextIO | None = None

    async def start(self) -> None:
        output = self.settings.output
        if output in ("stdout", "stderr"):
            return
        try:
            file = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConnectorError(
                f"connector {self.name!r}: the file {output!r} cannot be written: {error.strerror}"
            ) from None
        self._file = os.fdopen(file, "a", encoding="utf-8", errors="replace")

    async def stop(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def write(
        self, level: Level, event: str, fields: dict[str, Any], *, source: str, now: datetime
    ) -> None:
        """Write a line, unless its level is below the connector's. Raises `ConnectorError`."""
        if LEVELS[level] < LEVELS[self.settings.level]:
            return
        if self.settings.add_source:
            fields = {**fields, "source": source}
        stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = self._line(stamp, level, mask(event), mask(fields))
        try:
            output = self._output()
            output.write(line + "\n")
            output.flush()
        except OSError as error:
            raise ConnectorError(
                f"connector {self.name!r}: a line was not written: {error.strerror}"
            ) from None

    def _line(self, stamp: str, level: Level, event: str, fields: dict[str, Any]) -> str:
        if self.settings.format == "json":
            record = {"timestamp": stamp, "level": level, "event": event, **fields}
            return json.dumps(record, ensure_ascii=False)
        # As JSON where a line would otherwise not be one line, or one field look like two.
        pairs = [f"{name}={_shown(value)}" for name, value in fields.items()]
        text = event if event.isprintable() else json.dumps(event, ensure_ascii=False)
        return " ".join([stamp, level.upper().ljust(5), text, *pairs])

    def _output(self) -> TextIO:
        # Standard streams are looked up for each line: a test or a shell may have replaced them.
        return self._file or (sys.stdout if self.settings.output == "stdout" else sys.stderr)


def _shown(value: Any) -> str:
    if isinstance(value, str) and value.isprintable() and not set(value) & set(' "='):
        return value
    return json.dumps(value, ensure_ascii=False)
