"""The service that a case runs on: its own environment, models, stores and clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flowrt.config.files import find_files, merge, read_documents
from flowrt.config.load import Config, load_config
from flowrt.config.nodes import Table
from flowrt.engine.build import StandIn, build
from flowrt.errors import Fault
from flowrt.observe.masking import add_secrets
from flowrt.service import Service
from flowrt.storage.memory import MemoryStore
from flowrt.storage.tiers import Storage
from flowrt.testing.suite.clock import CaseClock

PLACEHOLDER = "stand-in"
_NAMES = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Configs:
    """The configs of a run of suites, each loaded once for each environment.

    Loading reads files; what a case needs of its own is built anew from what was read.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._loaded: dict[tuple[object, ...], tuple[Config, list[Fault]]] = {}

    def load(
        self, path: Path, env: Mapping[str, str], played: frozenset[str]
    ) -> tuple[Config, list[Fault]]:
        """The config with `env` over the environment.

        `played` are connectors with a stand-in: what only they need, such as a key, may be unset.
        """
        key = (path, tuple(sorted(env.items())), played)
        if key not in self._loaded:
            environ = {**self._environ, **env}
            for name in _needed_only_by(path, played):
                environ.setdefault(name, PLACEHOLDER)
            faults: list[Fault] = []
            config = load_config(path, environ=environ, faults=faults)
            add_secrets(value for value in config.env.secrets.values() if value != PLACEHOLDER)
            self._loaded[key] = (config, faults)
        return self._loaded[key]


def make_service(
    config: Config, faults: list[Fault], stand_in: StandIn, clock: CaseClock
) -> Service:
    """A service with stores of its own in memory. Raises `ConfigError` with all faults."""
    built = build(config, faults, stand_in=stand_in)
    storage = Storage(config.name, MemoryStore(clock=clock), MemoryStore(clock=clock))
    return Service(config, built, storage, clock=clock)


def _needed_only_by(path: Path, played: frozenset[str]) -> set[str]:
    """Variables without a default that only the connectors `played` refer to."""
    if not played:
        return set()
    document = merge(*_documents(path))
    theirs: set[str] = set()
    others: set[str] = set()
    for key, value in document.items():
        if key == "connectors" and isinstance(value, list):
            for entry in value:
                is_played = isinstance(entry, Table) and entry.get("name") in played
                (theirs if is_played else others).update(_placeholders(entry))
        elif key not in ("env", "resources"):
            others.update(_placeholders(value))
    declared = document.get("env")
    bare = {
        str(entry.get("name"))
        for entry in (declared if isinstance(declared, list) else [])
        if isinstance(entry, Table) and "default" not in entry
    }
    return (theirs - others) & bare


def _documents(path: Path) -> tuple[list[Table], list[Fault]]:
    return read_documents(find_files(path).files)


def _placeholders(node: Any) -> set[str]:
    if isinstance(node, str):
        return set(_NAMES.findall(node))
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        return {name for item in node for name in _placeholders(item)}
    return set()
