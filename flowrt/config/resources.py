"""Resources: the files a service may read, all below the folder of its config."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath, PureWindowsPath

from flowrt.config.source import MOST_BYTES, Unreadable, decode, read_file


class Resources:
    """Files by id, which is their path below `root` written with ``/``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.used: set[Path] = set()
        """The files that ids were located at, for whoever watches them for changes."""

    def locate(self, id_: str) -> Path:
        """The file of an id, whether it exists or not.

        Raises `ValueError` for an id that is absolute, goes up, or leads out through a link.
        """
        if not id_ or "\0" in id_:
            raise ValueError(f"{id_!r} is not a resource id")
        if id_.startswith("/") or PureWindowsPath(id_).drive or "\\" in id_:
            raise ValueError(f"the resource id {id_!r} must be a path below the config, with '/'")
        if ".." in PurePosixPath(id_).parts:
            raise ValueError(f"the resource id {id_!r} climbs out of the config's folder")
        path = self.root / id_
        # Path.resolve raises for a link to itself in some versions of Python only.
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root)):
            raise ValueError(f"the resource {id_!r} is a link out of the config's folder")
        self.used.add(path)
        return path

    def read_bytes(self, id_: str) -> bytes:
        """The content of a resource. Raises `ValueError` for a bad id, `OSError` if unreadable."""
        path = self.locate(id_)
        if path.exists() and not path.is_file():
            raise ValueError(f"the resource {id_!r} is not a file")
        data = read_file(path)
        if len(data) > MOST_BYTES:
            raise ValueError(f"the resource {id_!r} has more than {MOST_BYTES} bytes")
        return data

    def read(self, id_: str) -> str:
        """The text of a resource, UTF-8, with ``\\n`` line ends.

        Raises `ValueError` for a bad id or a text that is not UTF-8, `OSError` if unreadable.
        """
        try:
            return decode(self.read_bytes(id_), id_)
        except Unreadable as unreadable:
            raise ValueError(str(unreadable)) from None
