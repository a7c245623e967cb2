"""`file`: a folder that `file-read` and `file-write` work in."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo

from flowrt.connectors.file.below import read_below, write_below
from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.errors import ConnectorError, FlowError

T = TypeVar("T")


def _beside_the_file(root: str, info: ValidationInfo) -> str:
    """A relative folder is one beside the YAML file, from wherever the service is started."""
    return root if info.context is None else str(info.context.config.root / root)


class FileSettings(Settings):
    """Settings of `file`."""

    root: Annotated[str, Field(min_length=1), AfterValidator(_beside_the_file)] = Field(
        description="The folder; it must exist. A relative one is beside the YAML file."
    )
    create_dirs: bool = Field(
        default=False, description="Make the folders of a file that is written."
    )


class FileConnector(Connector[FileSettings]):
    """A folder whose files flows read and write, and nothing outside of it.

    Absolute paths, `..` and links that lead out are refused. Files are written at once or not at
    all, for their owner only (0600).

    ```yaml
    connectors:
      - name: reports
        type: file
        settings:
          root: /var/lib/reports
          createDirs: true
    ```
    """

    Settings = FileSettings

    def __init__(self, name: str, settings: FileSettings) -> None:
        super().__init__(name, settings)
        self._root = Path(settings.root)

    async def start(self) -> None:
        if os.open not in os.supports_dir_fd:
            raise ConnectorError(
                f"connector {self.name!r}: file needs a system that opens files relative to an "
                "open folder, which this one does not"
            )
        if not await asyncio.to_thread(self._root.is_dir):
            raise ConnectorError(
                f"connector {self.name!r}: the root {str(self._root)!r} is not a folder; "
                "create it, or change `root`"
            )

    async def read(self, path: str) -> bytes:
        """The content of a file. Raises `FlowError`."""
        return await self._do(path, "read", lambda: read_below(self._root, path))

    async def write(self, path: str, content: bytes) -> None:
        """Make or replace a file. Raises `FlowError`; then the file is as it was."""
        folders = self.settings.create_dirs
        hint = "" if folders else "; `createDirs: true` makes folders that are missing"
        await self._do(
            path,
            "written",
            lambda: write_below(self._root, path, content, create_folders=folders),
            hint,
        )

    async def _do(self, path: str, what: str, work: Callable[[], T], missing: str = "") -> T:
        shown = path if len(path) <= 200 else path[:199] + "…"
        try:
            return await asyncio.to_thread(work)
        except ValueError as error:
            problem = str(error)
        except FileNotFoundError:
            problem = f"cannot be {what}: it is not there{missing}"
        except OSError as error:
            # Its own text would name the root, which is none of a caller's business.
            problem = f"cannot be {what}: {error.strerror or type(error).__name__}"
        raise FlowError(f"connector {self.name!r}: the path {shown!r} {problem}")
