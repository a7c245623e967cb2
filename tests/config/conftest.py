"""A folder of config files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flowrt.config.load import Config, load_config
from flowrt.errors import ConfigError, Fault


class Folder:
    """A folder of files, loaded without anything of the machine's environment."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def load(self, text: str, environ: Mapping[str, str] | None = None, **options: Any) -> Config:
        path = self.write("f.yaml", text)
        return load_config(path, environ=environ or {}, cwd=self.path, **options)

    def load_all(self, **options: Any) -> Config:
        return load_config(self.path, environ={}, cwd=self.path, **options)

    def faults(self, text: str, environ: Mapping[str, str] | None = None) -> list[Fault]:
        with pytest.raises(ConfigError) as caught:
            self.load(text, environ)
        return caught.value.faults


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)
