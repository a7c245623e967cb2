"""YAML as it was read, with places: what the loader produces and everything later reads.

`Table`, `Items` and `Text` are a dict, a list and a str that remember where they came from.
pydantic turns `Text` into plain str for ordinary fields, and hands it on whole to the validators
of ours (expressions, chains) that need the place.
"""

from __future__ import annotations

from typing import Any

from flowrt.errors import Position

Scalar = str | int | float | bool | None


class Text(str):
    """A string scalar with its place. `literal` is true for quoted and block scalars.

    `origin` is the text as written where environment values were put in, else empty. `scalar` is
    what the value is where no type is asked for: a bare ``${PORT}`` that is set to ``8080`` is the
    text ``8080`` in a field that wants text, and the number 8080 in JSON data (dialect 1.3).
    """

    __slots__ = ("literal", "origin", "position", "scalar")

    position: Position
    literal: bool
    origin: str
    scalar: Scalar

    def __new__(
        cls, value: str, position: Position, literal: bool = False, origin: str = ""
    ) -> Text:
        self = super().__new__(cls, value)
        self.position = position
        self.literal = literal
        self.origin = origin
        self.scalar = value
        return self


class Table(dict[str, Any]):
    """A mapping with places: of itself, of each key and of each value.

    `path` is how a reader names it, such as ``flows.chat.process[0]``; empty for the document.
    `sources` holds the text of scalars that were read as something else and do not print as they
    were written, such as ``1.10``.
    """

    __slots__ = ("key_positions", "path", "paths", "position", "sources", "value_positions")

    def __init__(self, position: Position, path: str = "") -> None:
        super().__init__()
        self.position = position
        self.path = path
        self.key_positions: dict[str, Position] = {}
        self.value_positions: dict[str, Position] = {}
        self.sources: dict[str, str] = {}
        self.paths: dict[str, str] = {}

    def put(self, key: str, value: Any, key_position: Position, value_position: Position) -> None:
        """Add one entry with its places."""
        self[key] = value
        self.key_positions[key] = key_position
        self.value_positions[key] = value_position

    def take(self, key: str, other: Table) -> None:
        """Add an entry of another table; it keeps its places and its path."""
        self.put(key, other[key], other.key_positions[key], other.value_positions[key])
        if key in other.sources:
            self.sources[key] = other.sources[key]
        self.paths[key] = other.path_of(key)

    def path_of(self, key: str) -> str:
        """How a reader names the entry `key`, whether it exists or not."""
        if key in self.paths:
            return self.paths[key]
        return f"{self.path}.{key}" if self.path else key


class Items(list[Any]):
    """A sequence with places: of itself and of each item."""

    __slots__ = ("item_positions", "path", "position")

    def __init__(self, position: Position, path: str = "") -> None:
        super().__init__()
        self.position = position
        self.path = path
        self.item_positions: list[Position] = []


def plain(value: Any) -> Any:
    """The value as ordinary dict, list and scalars, for what outlives the loading."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.scalar if isinstance(value, Text) else value


def copied(value: Any) -> Any:
    """The value again, for another place in the tree: its paths will differ, its places not."""
    if isinstance(value, Table):
        table = Table(value.position)
        for key, item in value.items():
            table[key] = copied(item)
        table.key_positions = value.key_positions
        table.value_positions = value.value_positions
        table.sources = value.sources
        return table
    if isinstance(value, Items):
        items = Items(value.position)
        items += [copied(item) for item in value]
        items.item_positions = value.item_positions
        return items
    return value


_LONGEST_SHOWN = 60


def cut(text: str) -> str:
    """A text as it is quoted in an error: cut off where it is long."""
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…")


# Lists whose entries a reader knows by name rather than by number.
NAMED = frozenset({"connectors", "env", "flows", "processors"})


def name_paths(document: Table) -> None:
    """Give every table and list below `document` its path."""
    for key, value in document.items():
        if key in NAMED and isinstance(value, Items):
            value.path = key
            for index, item in enumerate(value):
                name = item.get("name") if isinstance(item, Table) else None
                named = isinstance(name, str) and name
                _set_path(item, f"{key}.{name}" if named else f"{key}[{index}]")
        else:
            _set_path(value, key)


def _set_path(value: Any, path: str) -> None:
    if isinstance(value, Table):
        value.path = path
        for key, item in value.items():
            if isinstance(item, Table | Items):
                _set_path(item, f"{path}.{key}")
    elif isinstance(value, Items):
        value.path = path
        for index, item in enumerate(value):
            if isinstance(item, Table | Items):
                _set_path(item, f"{path}[{index}]")
