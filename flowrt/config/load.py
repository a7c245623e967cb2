"""From a path to a `Config`: every fault of its files in one error."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from flowrt.config.env import (
    Declaration,
    EnvValues,
    Substitution,
    looks_secret,
    read_env_files,
    resolve,
)
from flowrt.config.faults import faults_from
from flowrt.config.files import ConfigFiles, find_files, merge, read_documents
from flowrt.config.fold import fold_settings
from flowrt.config.model import Document, EnvVariable
from flowrt.config.nodes import Items, Table, Text
from flowrt.config.resources import Resources
from flowrt.errors import ConfigError, Fault, Position

EXTENSION = "x-"
"""Top-level keys that start so are the author's own, for anchors to merge from."""


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector entry. `table` is the entry, with its raw `settings`."""

    name: str
    type: str
    table: Table


@dataclass(frozen=True, slots=True)
class Template:
    """A declared template: the name it is used by, and its resource id."""

    name: str
    resource: str


@dataclass(frozen=True, slots=True)
class FlowEntry:
    """A root flow; `process` and `error` hold raw block entries.

    `workers` is None where the runtime decides. A flow that has a source and no name is called
    after its place, ``flow-2``.
    """

    name: str
    process: Items
    error: Items | None
    source: Table | None
    workers: int | None
    buffer: int
    pool: int
    table: Table


@dataclass(frozen=True, slots=True)
class Config:
    """A service as its files describe it, checked in shape, with blocks still raw.

    `document` is the merged document with environment values put in; `files` are what was read.
    """

    name: str
    environment: str
    env: EnvValues
    resources: Resources
    templates: list[Template]
    connectors: list[Connector]
    processors: dict[str, Table]
    flows: list[FlowEntry]
    root: Path
    files: list[Path]
    document: Table


def load_config(
    path: str | Path,
    *,
    env_file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> Config:
    """Load a YAML file, or a folder of them, as one service.

    `environ` is the process environment unless given, `cwd` the folder ``.env`` is looked for in.
    Raises `ConfigError` with every fault found, in file order, and `CallError` where a file that
    was asked for is not there or cannot be read.
    """
    found = find_files(path)
    documents, faults = read_documents(found.files)
    whole = merge(documents, faults)
    loading = _Loading(found, whole, faults)
    loading.substitute(
        env_file=env_file,
        environ=os.environ if environ is None else environ,
        cwd=Path.cwd() if cwd is None else Path(cwd),
    )
    return loading.config()


class _Loading:
    """One load on its way: the document, and the faults so far."""

    def __init__(self, found: ConfigFiles, document: Table, faults: list[Fault]) -> None:
        self.found = found
        self.document = document
        self.faults = faults
        self.resources = Resources(found.root)
        self.env = EnvValues()
        self.declared: list[EnvVariable] = []

    def substitute(
        self,
        *,
        env_file: str | os.PathLike[str] | None,
        environ: Mapping[str, str],
        cwd: Path,
    ) -> None:
        """Find the environment values and put them into the document."""
        declarations = self._declarations()
        files = read_env_files(
            cwd=cwd,
            environ=environ,
            env_file=env_file,
            entries=self._env_entries(),
            resources=self.resources,
            faults=self.faults,
        )
        self.env = resolve(declarations, environ, files, self.faults)
        missing = [item.name for item in declarations if item.required]
        Substitution(self.env, missing, self.faults).document(self.document)

    def config(self) -> Config:
        """The checked config. Raises `ConfigError` with all faults."""
        document = self._validated()
        self._check_names()
        if self.faults or document is None:
            raise ConfigError(sorted(self.faults, key=_file_order))
        raw = self.document
        service, lists = document.service, document.resources
        return Config(
            name=service.name if service else self.found.name,
            environment=service.environment if service else "",
            env=self.env,
            resources=self.resources,
            templates=[
                Template(item.as_ or item.resource, item.resource)
                for item in (lists.templates if lists else [])
            ],
            connectors=[
                Connector(entry.name, entry.type, table)
                for entry, table in zip(document.connectors, raw.get("connectors", []), strict=True)
            ],
            processors={str(table["name"]): table for table in raw.get("processors", [])},
            flows=[
                FlowEntry(
                    entry.name or f"flow-{number}",
                    entry.process,
                    entry.error,
                    table.get("source"),
                    entry.workers,
                    entry.buffer,
                    entry.pool,
                    table,
                )
                for number, (entry, table) in enumerate(
                    zip(document.flows, raw.get("flows", []), strict=True), 1
                )
            ],
            root=self.found.root,
            files=self.found.files,
            document=raw,
        )

    def _validated(self) -> Document | None:
        entries = {
            key: value
            for key, value in self.document.items()
            if not key.startswith(EXTENSION) and not (value is None and key in _MAY_BE_EMPTY)
        }
        for key in _MAY_BE_EMPTY:
            if self.document.get(key, 0) is None:
                self.document[key] = Items(self.document.value_positions[key], key)
        for table in _tables(self.document.get("processors")):
            fold_settings(table, str(table.get("name", "")), self.faults)
        if isinstance(entries.get("env"), Items):
            entries["env"] = self.declared
        try:
            return Document.model_validate(entries)
        except ValidationError as error:
            self.faults += faults_from(error, self.document, Document)
            return None

    def _declarations(self) -> list[Declaration]:
        found: dict[str, Declaration] = {}
        entries = self.document.get("env")
        if not isinstance(entries, Items):
            return []
        for index, table in enumerate(entries):
            if not isinstance(table, Table):
                self.faults.append(
                    Fault(entries.item_positions[index], f"env[{index}]", "expected a mapping")
                )
                continue
            try:
                variable = EnvVariable.model_validate(table)
            except ValidationError as error:
                self.faults += faults_from(error, table, EnvVariable)
                continue
            self.declared.append(variable)
            position = table.value_positions["name"]
            first = found.get(variable.name)
            if first is None:
                found[variable.name] = _declaration(variable, table)
            elif first.position.file == position.file:
                self.faults.append(
                    _twice(
                        "environment variable", variable.name, position, table.path, first.position
                    )
                )
        return list(found.values())

    def _env_entries(self) -> list[Text]:
        lists = self.document.get("resources")
        entries = lists.get("env") if isinstance(lists, Table) else None
        if not isinstance(entries, Items):
            return []
        return [entry for entry in entries if isinstance(entry, Text) and entry]

    def _check_names(self) -> None:
        for key, kind in (
            ("connectors", "connector"),
            ("processors", "processor"),
            ("flows", "flow"),
        ):
            seen: dict[str, Position] = {}
            for table in _tables(self.document.get(key)):
                name = table.get("name")
                if not isinstance(name, str):
                    continue
                position = table.value_positions["name"]
                if name in seen:
                    self.faults.append(_twice(kind, name, position, f"{key}.{name}", seen[name]))
                seen.setdefault(name, position)


_MAY_BE_EMPTY = ("env", "connectors", "processors", "flows")


def _declaration(variable: EnvVariable, table: Table) -> Declaration:
    default = table.get("default")
    if default is not None:
        default = table.sources.get("default", str(default))
    secret = looks_secret(variable.name) if variable.secret is None else variable.secret
    return Declaration(
        variable.name,
        default,
        variable.required,
        secret,
        table.value_positions["name"],
        table.path,
    )


def _tables(items: Any) -> list[Table]:
    if not isinstance(items, Items):
        return []
    return [item for item in items if isinstance(item, Table)]


def _twice(kind: str, name: str, position: Position, path: str, first: Position) -> Fault:
    return Fault(
        position,
        path,
        f'{kind} "{name}" is defined more than once',
        f"first at {first}",
        "rename one",
    )


def _file_order(fault: Fault) -> tuple[str, int, int]:
    return fault.position or ("", 0, 0)
