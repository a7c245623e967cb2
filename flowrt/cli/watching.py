"""Which files a service was made of, and whether they have changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from flowrt.config.files import find_files
from flowrt.config.load import Config
from flowrt.errors import CallError

Stamp = tuple[int, int, int]


class Watch:
    """Compares the files of a service with how they were when it was last asked.

    The files of the config, those it names as resources (templates, env files, skills), ``.env``
    and the env files that the environment and `env_file` name. They need not exist.
    """

    def __init__(
        self, config_path: str, env_file: str | None, environ: Mapping[str, str] | None = None
    ) -> None:
        environ = os.environ if environ is None else environ
        self._path = config_path
        named = environ.get("FLOWRT_ENV_FILE") or environ.get("OCTO_ENV_FILE")
        self._files = {Path(name) for name in (".env", named, env_file) if name}
        self._stamps: dict[Path, Stamp | None] = {}
        self.changed()

    def add(self, config: Config) -> None:
        """Watch what this config has read as well."""
        new = {*config.files, *config.resources.used} - self._files
        self._files |= new
        self._stamps |= {path: _stamp(path) for path in new}

    def changed(self) -> list[str]:
        """The files that are not what they were at the last call."""
        stamps = {path: _stamp(path) for path in self._files | self._config_files()}
        before, self._stamps = self._stamps, stamps
        return sorted(
            str(path)
            for path in stamps.keys() | before.keys()
            if stamps.get(path) != before.get(path)
        )

    def _config_files(self) -> set[Path]:
        """Of a folder: those it has now, which may be others than it was loaded from."""
        try:
            return set(find_files(self._path).files)
        except CallError:
            return set()


def _stamp(path: Path) -> Stamp | None:
    """What tells one state of a file from the next; the inode, for editors that replace it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
