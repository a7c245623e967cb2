"""`file-read`: the content of a file."""

from __future__ import annotations

import base64
import mimetypes
from typing import Literal

from pydantic import Field

from flowrt.connectors.file.connector import FileConnector
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import FlowError
from flowrt.message import Message, clean_text

# What `mimetypes` does not know in every version of Python.
_TYPES = {".md": "text/markdown", ".yaml": "application/yaml", ".yml": "application/yaml"}


class FileReadSettings(Settings):
    """Settings of `file-read`."""

    connector: str = Field(min_length=1, description="The `file` connector.")
    path: Expr = Field(description="The file, below the connector's root.")
    encoding: Literal["text", "base64"] = Field(
        default="text", description="How bytes become text; `text` is UTF-8."
    )
    content_type: str = Field(
        default="", description="The content type of the raw body; unset, the extension's."
    )
    result_var: str = Field(
        default="", description="The variable for the content; unset, it becomes the body."
    )


class FileRead(Block[FileReadSettings]):
    """Reads a file, as raw content `{contentType, rawData}`, or with `resultVar` as a text.

    ```yaml
    - type: file-read
      connector: reports
      path: '"2026/" + body.month + ".csv"'
      resultVar: csv
    ```
    """

    Settings = FileReadSettings

    def __init__(self, settings: FileReadSettings, site: Site) -> None:
        super().__init__(settings, site)
        if settings.content_type and settings.result_var:
            raise site.refuse(("contentType",), "contentType is of a body, and resultVar is set")
        self._files = site.connector(settings.connector, FileConnector, "a file connector")

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        path = settings.path.key(message, "file-read path")
        content = await self._files.read(path)
        text = self._text(content, path)
        if settings.result_var:
            message.set(settings.result_var, text)
            return message
        kind = settings.content_type or _type_of(path)
        message.body = {"contentType": kind, "rawData": text}
        message.raw = True
        message.body_schema = None
        return message

    def _text(self, content: bytes, path: str) -> str:
        if self.settings.encoding == "base64":
            return base64.b64encode(content).decode()
        try:
            # A mark at the beginning is how editors of one system say UTF-8; it is no content.
            return clean_text(content.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise FlowError(
                f"file-read: {path!r} is no UTF-8 text; `encoding: base64` takes any bytes"
            ) from None


def _type_of(path: str) -> str:
    extension = path[path.rfind(".") :].lower() if "." in path else ""
    return _TYPES.get(extension) or mimetypes.guess_type(path)[0] or "application/octet-stream"
