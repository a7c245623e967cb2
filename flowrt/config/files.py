"""The files of a config, and one document made of them (dialect 1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flowrt.config.nodes import Items, Table
from flowrt.config.source import read_file
from flowrt.config.yaml import read_yaml
from flowrt.errors import CallError, ConfigError, Fault, Position

_ENDINGS = (".yaml", ".yml")
_SUITES = ("_test.yaml", "_test.yml")


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    """What a config path stands for: its files in order, the resource root, a name for it."""

    files: list[Path]
    root: Path
    name: str


def find_files(path: str | Path) -> ConfigFiles:
    """The files behind a path: itself, or the YAML files directly in the folder, in lexical order.

    Files that end in ``_test.yaml`` hold suites and are passed over. Raises `CallError` where there
    is nothing to read.
    """
    path = Path(path)
    try:
        if path.is_dir():
            files = sorted(
                (entry for entry in path.iterdir() if _is_config(entry)), key=lambda p: p.name
            )
            if not files:
                raise CallError(f'no .yaml/.yml config files in "{path}"')
            return ConfigFiles(files, path, path.resolve().name)
        if not path.exists():
            raise CallError(f'there is no config file or folder at "{path}"')
    except (OSError, ValueError) as error:
        raise CallError(f'the config "{path}" cannot be read: {error}') from error
    return ConfigFiles([path], path.parent, path.stem)


def _is_config(entry: Path) -> bool:
    name = entry.name
    return name.endswith(_ENDINGS) and not name.endswith(_SUITES) and entry.is_file()


def read_documents(files: list[Path]) -> tuple[list[Table], list[Fault]]:
    """The documents of the files. Raises `ConfigError` where one cannot be understood at all."""
    documents = []
    faults: list[Fault] = []
    for file in files:
        try:
            data = read_file(file)
        except OSError as error:
            raise CallError(f'the config file "{file}" cannot be read: {error.strerror}') from error
        document, found = read_yaml(data, str(file))
        faults += found
        if document is not None:
            documents.append(document)
    if len(documents) < len(files):
        raise ConfigError(faults)
    return documents, faults


def merge(documents: list[Table], faults: list[Fault]) -> Table:
    """One document of several: lists are joined, `service` stands in one of them."""
    if len(documents) == 1:
        return documents[0]
    whole = Table(documents[0].position)
    for document in documents:
        for key in document:
            if key not in whole:
                whole.take(key, document)
                whole[key] = _own(document[key])
            elif key == "service":
                faults.append(_second_service(whole, document))
            else:
                _join(whole, key, document, faults)
    return whole


def _own(value: Any) -> Any:
    """A list or mapping that can grow without changing the file's own."""
    if isinstance(value, Items):
        items = Items(value.position, value.path)
        _extend(items, value)
        return items
    if isinstance(value, Table):
        table = Table(value.position, value.path)
        for key in value:
            table.take(key, value)
            table[key] = _own(value[key])
        return table
    return value


def _extend(items: Items, more: Items) -> None:
    items += more
    items.item_positions += more.item_positions


def _join(whole: Table, key: str, other: Table, faults: list[Fault]) -> None:
    here, there = whole[key], other[key]
    if isinstance(here, Items) and isinstance(there, Items):
        _extend(here, there)
    elif isinstance(here, Table) and isinstance(there, Table):
        for name in there:
            if name in here:
                _join(here, name, there, faults)
            else:
                here.take(name, there)
                here[name] = _own(there[name])
    elif there is not None and here is None:
        whole.take(key, other)
        whole[key] = _own(there)
    elif there is not None:
        faults.append(
            Fault(
                other.value_positions[key],
                other.path_of(key),
                f"{key!r} cannot be joined with the one at {whole.value_positions[key]}",
                "both must be lists",
            )
        )


def _second_service(whole: Table, document: Table) -> Fault:
    first: Position = whole.key_positions["service"]
    return Fault(
        document.key_positions["service"],
        "service",
        "service identity declared in more than one config file",
        f"first at {first}",
        "keep one of them",
    )
