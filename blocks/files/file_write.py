"""`file-write`: make or replace a file."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Literal

from pydantic import Field

from flowrt.connectors.file.connector import FileConnector
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import FlowError
from flowrt.message import Message


class FileWriteSettings(Settings):
    """Settings of `file-write`."""

    connector: str = Field(min_length=1, description="The `file` connector.")
    path: Expr = Field(description="The file, below the connector's root.")
    content: Expr | None = Field(
        default=None,
        description="A text as it is, anything else as JSON; unset, the body, raw content as text.",
    )
    encoding: Literal["text", "base64"] = Field(
        default="text", description="`base64`: the content is bytes in base64."
    )
    result_var: str = Field(
        default="", description="The variable for the receipt; unset, it becomes the body."
    )


class FileWrite(Block[FileWriteSettings]):
    """Writes a file at once or not at all, for its owner only, and gives `{path, bytes}`.

    ```yaml
    - type: file-write
      connector: reports
      path: '"2026/" + body.month + ".json"'
      content: body.report
      resultVar: receipt
    ```
    """

    Settings = FileWriteSettings

    def __init__(self, settings: FileWriteSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._files = site.connector(settings.connector, FileConnector, "a file connector")

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        path = settings.path.key(message, "file-write path")
        content = self._content(message)
        await self._files.write(path, content)
        receipt = {"path": path, "bytes": len(content)}
        if settings.result_var:
            message.set(settings.result_var, receipt)
        else:
            message.body = receipt
            message.raw = False
            message.body_schema = None
        return message

    def _content(self, message: Message) -> bytes:
        expr = self.settings.content
        if expr is not None:
            value = expr.value(message)
        else:
            value = message.body["rawData"] if message.raw else message.body
        if self.settings.encoding == "base64":
            return _decoded(value)
        return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode()


def _decoded(value: Any) -> bytes:
    try:
        if isinstance(value, str):
            return base64.b64decode("".join(value.split()), validate=True)
        problem = f"found {type(value).__name__}"
    except binascii.Error as error:
        problem = str(error)
    raise FlowError(f"file-write: encoding base64 needs a text in base64: {problem}")
