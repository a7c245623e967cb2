"""From a path to a `Config`: every fault of its files in one error."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flowrt.config.checks import check_names, check_templates, tables
from flowrt.config.declare import declarations
from flowrt.config.env import EnvValues, read_env_files, resolve
from flowrt.config.files import ConfigFiles, find_files, merge, read_documents
from flowrt.config.model import Document, FlowEntry
from flowrt.config.nodes import Items, Table
from flowrt.config.resources import Resources
from flowrt.config.shape import blocks, check_shape
from flowrt.config.substitute import Substitution
from flowrt.errors import ConfigError, Fault


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
class Flow:
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
    `environ` is the environment it was loaded in, for what a library would look up there.
    """

    name: str
    environment: str
    env: EnvValues
    resources: Resources
    templates: list[Template]
    connectors: list[Connector]
    processors: dict[str, Table]
    flows: list[Flow]
    root: Path
    files: list[Path]
    document: Table
    environ: Mapping[str, str]


def load_config(
    path: str | Path,
    *,
    env_file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    faults: list[Fault] | None = None,
) -> Config:
    """Load a YAML file, or a folder of them, as one service.

    `environ` is the process environment unless given, `cwd` the folder ``.env`` is looked for in.
    Raises `ConfigError` with every fault found, in file order, and `CallError` where a file that
    was asked for is not there or cannot be read.

    With a list of `faults`, those which leave the blocks readable are added to it instead of being
    raised, so that whoever binds the blocks can report its own together with them.
    """
    found = find_files(path)
    documents, noted = read_documents(found.files)
    document = merge(documents, noted)
    resources = Resources(found.root)
    blocking: list[Fault] = []
    environ = os.environ if environ is None else environ
    env = _put_env_in(
        document,
        resources,
        env_file=env_file,
        environ=environ,
        cwd=Path.cwd() if cwd is None else Path(cwd),
        faults=blocking,
    )
    checked = check_shape(document, noted, blocking)
    check_names(document, noted)
    check_templates(document, resources, noted)
    if checked is None or blocking or (noted and faults is None):
        raise ConfigError(in_file_order([*noted, *blocking]))
    if faults is not None:
        faults += in_file_order(noted)
    return _config(found, document, checked, env, resources, environ)


def in_file_order(faults: list[Fault]) -> list[Fault]:
    """Each fault once, by file, line and column."""
    return sorted(dict.fromkeys(faults), key=lambda fault: fault.position or ("", 0, 0))


def _put_env_in(
    document: Table,
    resources: Resources,
    *,
    env_file: str | os.PathLike[str] | None,
    environ: Mapping[str, str],
    cwd: Path,
    faults: list[Fault],
) -> EnvValues:
    """Find the environment values and put them into the document."""
    declared = declarations(document, faults)
    lists = document.get("resources")
    entries = lists.get("env") if isinstance(lists, Table) else None
    files = read_env_files(
        cwd=cwd,
        environ=environ,
        env_file=env_file,
        entries=entries if isinstance(entries, Items) else [],
        resources=resources,
        faults=faults,
    )
    env = resolve(declared, environ, files, faults)
    # A variable whose declaration is at fault is reported there, and only there.
    sound = {item.name for item in declared if not item.required}
    reported = {str(table.get("name")) for table in tables(document.get("env"))} - sound
    Substitution(env, reported, faults).document(document)
    return env


def _config(
    found: ConfigFiles,
    document: Table,
    checked: Document,
    env: EnvValues,
    resources: Resources,
    environ: Mapping[str, str],
) -> Config:
    service = checked.service
    templates = checked.resources.templates if checked.resources else []
    connectors = zip(checked.connectors, tables(document.get("connectors")), strict=True)
    flows = zip(checked.flows, _names(checked), tables(document.get("flows")), strict=True)
    return Config(
        name=service.name if service else found.name,
        environment=service.environment if service else "",
        env=env,
        resources=resources,
        templates=[Template(item.as_ or item.resource, item.resource) for item in templates],
        connectors=[Connector(entry.name, entry.type, table) for entry, table in connectors],
        processors={str(table["name"]): table for table in tables(document.get("processors"))},
        flows=[_flow(entry, name, table) for entry, name, table in flows],
        root=found.root,
        files=found.files,
        document=document,
        environ=environ,
    )


def _names(checked: Document) -> list[str]:
    """The name of each flow: its own, or one after its place that no other flow has."""
    taken = {flow.name for flow in checked.flows}
    names = []
    for number, flow in enumerate(checked.flows, 1):
        name = flow.name or f"flow-{number}"
        while flow.name is None and name in taken:
            name += "-unnamed"
        taken.add(name)
        names.append(name)
    return names


def _flow(entry: FlowEntry, name: str, table: Table) -> Flow:
    return Flow(
        name=name,
        process=blocks(table.get("process")) or Items(table.position, table.path_of("process")),
        error=blocks(table.get("error")),
        source=table.get("source") if entry.source else None,
        workers=entry.workers,
        buffer=entry.buffer,
        pool=entry.pool,
        table=table,
    )
