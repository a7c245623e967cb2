"""A strict YAML reader whose values know their places.

One document of mappings, lists and scalars as JSON has them: string keys, no duplicates, no tags
beyond the core ones, bounded size, depth and aliases. ``<<`` merges are read; explicit keys win.
It is built on the events of PyYAML's C parser, so that nothing is built before it is counted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import yaml

from flowrt.config.nodes import Items, Table, Text, copied, cut, name_paths
from flowrt.config.scalars import NotJson, read_scalar
from flowrt.config.source import Unreadable, check_visible, decode
from flowrt.config.syntax import syntax_fault
from flowrt.config.trail import Found, Step, path_of
from flowrt.errors import ConfigError, Fault, Position
from flowrt.message import clean_text

DEEPEST = 100
MOST_NODES = 100_000
MOST_FAULTS = 100

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_CORE = "tag:yaml.org,2002:"
_SCALAR_TAGS = {_CORE + name for name in ("bool", "float", "int", "null")}
_TEXT_TAGS = {"!", _CORE + "str"}
_COLLECTION_TAGS = {_CORE + "map", _CORE + "seq", "!"}

# libyaml follows YAML 1.1, where these end a line. Inside a text they are just characters, so they
# are sent through the parser under names of the same length that the file does not use.
_LINE_BREAKS_OF_1_1 = "\x85\u2028\u2029"


def load_yaml(text: bytes | str, file: str) -> Table:
    """Read one document whose root is a mapping. Raises `ConfigError` with every fault found."""
    document, faults = read_yaml(text, file)
    if faults or document is None:
        raise ConfigError(faults)
    return document


def read_yaml(text: bytes | str, file: str) -> tuple[Table | None, list[Fault]]:
    """Read one document; the table is None where the file cannot be understood at all."""
    try:
        source = decode(text, file)
        check_visible(source, file)
        reader = _Reader(source, file)
    except Unreadable as unreadable:
        return None, [unreadable.fault]
    try:
        root = reader.document()
    except Unreadable as unreadable:
        return None, [*reader.faults(), unreadable.fault]
    except yaml.YAMLError as error:
        fault = syntax_fault(error, source, file)
        return None, [*reader.faults(), replace(fault, path=reader.path())]
    if not isinstance(root, Table):
        kind = "a list" if isinstance(root, Items) else "a single value"
        found = "the file is empty" if root is None else f"the file holds {kind}"
        fault = Fault(Position(file, 1, 1), "", found, "expected keys such as `service:`, `flows:`")
        return None, [fault]
    name_paths(root)
    return root, reader.faults()


class _Anchored(NamedTuple):
    """A node that aliases may repeat; `size` counts it and all below it."""

    value: Any
    size: int
    position: Position
    source: str = ""


class _Reader:
    """One pass over the events of one file."""

    def __init__(self, source: str, file: str) -> None:
        self.file = file
        self._shown: dict[int, str] = {}
        self._parser = _Parser(self._hide_line_breaks(source))
        self._found: list[Found] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._nodes = 0
        # The way to the node being read, for the path of a fault in it.
        self._trail: list[Step] = []

    def faults(self) -> list[Fault]:
        """What was found, once the paths are known."""
        return [found.placed() for found in self._found]

    def path(self) -> str:
        """The path of what is being read."""
        return path_of(self._trail)

    def document(self) -> Any:
        """The root, or None for a file without content."""
        self._next()
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return None
        root = self._node(self._next(), 1).value
        self._next()
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise self._stop(
                self._place(event),
                "a second document starts here",
                "a file holds one document",
                "remove the `---` or split the file",
            )
        return root

    def _next(self) -> Any:
        return self._parser.get_event()

    def _place(self, event: Any) -> Position:
        mark = event.start_mark
        return Position(self.file, mark.line + 1, mark.column + 1)

    def _stop(
        self, position: Position, found: str, rule: str = "", way_out: str = ""
    ) -> Unreadable:
        return Unreadable(Fault(position, self.path(), found, rule, way_out))

    def _note(self, position: Position, found: str, rule: str = "", way_out: str = "") -> None:
        fault = Fault(position, "", found, rule, way_out)
        self._found.append(Found(tuple(self._trail), fault))
        if len(self._found) == MOST_FAULTS:
            raise self._stop(position, f"the file has more than {MOST_FAULTS} faults")

    def _count(self, nodes: int, position: Position) -> None:
        self._nodes += nodes
        if self._nodes > MOST_NODES:
            raise self._stop(
                position,
                f"the document has more than {MOST_NODES} values, aliases written out",
                way_out="repeat less with aliases, or split the file",
            )

    def _node(self, event: Any, depth: int) -> _Anchored:
        position = self._place(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, position)
        before = self._nodes
        self._count(1, position)
        if depth > DEEPEST:
            raise self._stop(position, f"nested more than {DEEPEST} levels deep")
        anchor = event.anchor
        if isinstance(event, yaml.ScalarEvent):
            value, source = self._scalar(event, position)
            node = _Anchored(value, 1, position, source)
        else:
            if anchor is not None:
                self._anchors[anchor] = None
            value = self._collection(event, position, depth)
            node = _Anchored(value, self._nodes - before, position)
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _alias(self, event: Any, position: Position) -> _Anchored:
        name = event.anchor
        if name not in self._anchors:
            raise self._stop(
                position, f"the alias {cut('*' + name)} has no anchor before it",
                way_out="quote the text if it is not meant as an alias",
            )  # fmt: skip
        node = self._anchors[name]
        if node is None:
            raise self._stop(position, f"the alias {cut('*' + name)} stands inside its own anchor")
        self._count(node.size, position)
        return node._replace(value=copied(node.value))

    def _scalar(self, event: Any, position: Position) -> tuple[Any, str]:
        text = self._show(event.value)
        bare, tag = event.implicit[0], event.tag
        if tag in _TEXT_TAGS or (tag is None and not bare):
            if clean_text(text) is not text:
                self._note(
                    position, "a text with a NUL character or half a surrogate pair",
                    way_out="remove the escape",
                )  # fmt: skip
            return Text(text, position, not bare or tag is not None), ""
        if tag is not None and tag not in _SCALAR_TAGS:
            self._bad_tag(tag, position)
            return None, ""
        try:
            value = read_scalar(text)
        except NotJson as error:
            self._note(position, str(error), way_out="quote it to have it as text")
            return None, ""
        if isinstance(value, str):
            if tag is not None:
                self._bad_tag(tag, position)
            return Text(text, position), ""
        return value, text if text != str(value) else ""

    def _bad_tag(self, tag: str, position: Position) -> None:
        name = tag.replace(_CORE, "!!")
        self._note(
            position, f"the tag {cut(name)} is not supported here",
            way_out="quote the text if the '!' belongs to it, else remove the tag",
        )  # fmt: skip

    def _collection(self, event: Any, position: Position, depth: int) -> Table | Items:
        if event.tag is not None and event.tag not in _COLLECTION_TAGS:
            self._bad_tag(event.tag, position)
        self._trail.append(Step(None, ""))
        if isinstance(event, yaml.MappingStartEvent):
            value: Table | Items = self._table(position, depth)
        else:
            value = self._items(position, depth)
        self._trail.pop()
        return value

    def _items(self, position: Position, depth: int) -> Items:
        items = Items(position)
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            self._trail[-1] = Step(items, len(items))
            node = self._node(event, depth + 1)
            items.append(node.value)
            items.item_positions.append(node.position)
        return items

    def _table(self, position: Position, depth: int) -> Table:
        table = Table(position)
        merged: list[Table] = []
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            self._trail[-1] = Step(table, "")
            place = self._place(event)
            key = self._key(event, place, depth)
            merge = key == "<<" and event.implicit[0] and event.tag is None
            self._trail[-1] = Step(table, key or "")
            if key in table.key_positions:
                self._note(
                    place, f"the key {cut(key)} is given twice",
                    f"first on line {table.key_positions[key].line}", "remove one of them",
                )  # fmt: skip
            node = self._node(self._next(), depth + 1)
            if merge:
                table.key_positions["<<"] = place
                merged += self._merged(node)
            elif key is not None and key not in table:
                table.put(key, node.value, place, node.position)
                if node.source:
                    table.sources[key] = node.source
        if merged:
            self._merge(table, merged)
        return table

    def _key(self, event: Any, position: Position, depth: int) -> str | None:
        """The key's text, or None where it cannot be one; its events are used up either way."""
        node = self._node(event, depth + 1)
        if isinstance(node.value, Text) and not isinstance(event, yaml.AliasEvent):
            return str(node.value)
        value = node.value
        if isinstance(value, Table | Items):
            kind = "mapping" if isinstance(value, Table) else "list"
            found, way_out = (
                f"a {kind} stands as a key",
                "quote the text if it starts with '{' or '['",
            )
        elif isinstance(event, yaml.AliasEvent):
            found, way_out = "an alias stands as a key", "write the key out"
        else:
            text = event.value
            kind = "a number"
            if value is None:
                kind = "nothing"
            elif isinstance(value, bool):
                kind = "true or false"
            found = (
                f"the key {cut(text)} reads as {kind}" if text else "a key is missing before ':'"
            )
            way_out = "quote it" if text else "write one"
        self._note(position, found, "keys are text", way_out)
        return None

    def _merged(self, node: _Anchored) -> list[Table]:
        tables = node.value if isinstance(node.value, Items) else [node.value]
        if all(isinstance(table, Table) for table in tables):
            return list(tables)
        self._note(node.position, "`<<` takes a mapping, or a list of mappings")
        return []

    def _merge(self, table: Table, merged: list[Table]) -> None:
        del table.key_positions["<<"]
        for other in merged:
            for key in other:
                if key not in table:
                    table.take(key, other)
        # The places stay where the entries are written, the paths are those of where they are used.
        table.paths.clear()

    def _hide_line_breaks(self, source: str) -> str:
        present = [char for char in _LINE_BREAKS_OF_1_1 if char in source]
        if not present:
            return source
        free = (chr(code) for code in range(0xE000, 0xF900) if chr(code) not in source)
        hidden = {ord(char): next(free) for char in present}
        self._shown = {ord(name): chr(code) for code, name in hidden.items()}
        return source.translate(hidden)

    def _show(self, text: str) -> str:
        return text.translate(self._shown) if self._shown else text
