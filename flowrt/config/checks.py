"""What has to hold between the entries of a document: names are unique, templates exist."""

from __future__ import annotations

from typing import Any

from flowrt.config.nodes import Items, Table, Text, cut
from flowrt.config.resources import Resources
from flowrt.errors import Fault, Position

_KINDS = {"connectors": "connector", "processors": "processor", "flows": "flow"}


def tables(items: Any) -> list[Table]:
    """The mappings among the items of a list, whatever else is wrong with it."""
    if not isinstance(items, Items):
        return []
    return [item for item in items if isinstance(item, Table)]


def check_names(document: Table, faults: list[Fault]) -> None:
    """Connectors, processors and flows each have a name of their own (dialect 1.2)."""
    for key, kind in _KINDS.items():
        seen: dict[str, Position] = {}
        for table in tables(document.get(key)):
            name = table.get("name")
            if not isinstance(name, str):
                continue
            position = table.value_positions["name"]
            if (first := seen.get(name)) is not None:
                faults.append(defined_twice(kind, name, position, f"{key}.{name}", first))
            else:
                seen[name] = position


def check_templates(document: Table, resources: Resources, faults: list[Fault]) -> None:
    """Declared templates are there, and each is known by a name of its own (dialect 1.4)."""
    lists = document.get("resources")
    if not isinstance(lists, Table):
        return
    seen: dict[str, tuple[str, Position]] = {}
    for table in tables(lists.get("templates")):
        id_ = table.get("resource")
        if not isinstance(id_, Text) or not id_:
            continue
        position, path = id_.position, table.path_of("resource")
        if reason := _unusable(id_, resources):
            faults.append(Fault(position, path, reason))
        name = table.get("as") or id_
        first, place = seen.setdefault(str(name), (str(id_), position))
        # The files of one service may each declare the template they use.
        if place is not position and (first != id_ or place.file == position.file):
            faults.append(defined_twice("template", name, position, path, place))


def _unusable(id_: str, resources: Resources) -> str:
    try:
        if not resources.locate(id_).is_file():
            return f'template resource "{id_}" does not exist'
        resources.read(id_)
    except ValueError as error:
        return str(error)
    except OSError as error:
        return f"the template resource {cut(id_)} cannot be read: {error.strerror}"
    return ""


def defined_twice(kind: str, name: str, position: Position, path: str, first: Position) -> Fault:
    """The fault of a second definition, with the place of the first."""
    found = f'{kind} "{name}" is defined more than once'
    return Fault(position, path, found, f"first at {first}", "rename or remove one")
