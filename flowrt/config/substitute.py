"""Environment values put into a document (dialect 1.3).

They are put into scalars that are already parsed, once: whatever a value contains, it stays the
text of that scalar (FB-96).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from flowrt.config.env import EnvValues
from flowrt.config.faults import nearest
from flowrt.config.nodes import Items, Scalar, Table, Text
from flowrt.config.scalars import NotJson, read_scalar
from flowrt.errors import Fault, Position

_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NOT_SUBSTITUTED = ("env", "resources")


class Substitution:
    """Puts environment values into a document, in place."""

    def __init__(self, env: EnvValues, reported: Iterable[str], faults: list[Fault]) -> None:
        self._values = env.values
        self._unset = env.unset
        # Required variables that are missing were reported where they are declared.
        self._reported = frozenset(reported)
        self._faults = faults

    def document(self, document: Table) -> None:
        """Everything of a document but what declares values and names files."""
        for key, value in document.items():
            if key not in _NOT_SUBSTITUTED:
                document[key] = self._node(value, document.path_of(key))

    def _node(self, node: Any, path: str) -> Any:
        if isinstance(node, Text):
            return self._text(node, path) if "${" in node else node
        if isinstance(node, Table):
            for key, value in node.items():
                if isinstance(value, Text):
                    if "${" in value:
                        node[key] = self._text(value, node.path_of(key))
                elif isinstance(value, dict | list):
                    self._node(value, "")
        elif isinstance(node, Items):
            for index, value in enumerate(node):
                node[index] = self._node(value, f"{node.path}[{index}]")
        return node

    def _text(self, text: Text, path: str) -> Text:
        names = _PLACEHOLDER.findall(text)
        if not names:
            return text
        missing = [name for name in dict.fromkeys(names) if name not in self._values]
        for name in missing:
            self._report(name, text.position, path)
        if missing:
            return text
        resolved = _PLACEHOLDER.sub(lambda match: self._values[match[1]], text)
        new = Text(resolved, text.position, text.literal, origin=str(text))
        if not text.literal and _PLACEHOLDER.fullmatch(text):
            new.scalar = _typed(resolved)
        return new

    def _report(self, name: str, position: Position, path: str) -> None:
        if name in self._reported:
            return
        if name in self._unset:
            found = f'environment variable "{name}" is referenced but not set and has no default'
            way_out = "set it, or give it a default"
        else:
            found = f'references undeclared environment variable "{name}"'
            close = nearest(name, [*self._values, *self._unset])
            way_out = f"did you mean {close!r}?" if close else "declare it under `env:`"
        self._faults.append(Fault(position, path, found, way_out=way_out))


def _typed(text: str) -> Scalar:
    """The scalar a value reads as; empty stays empty text, a list or mapping stays text."""
    try:
        return read_scalar(text) if text else text
    except NotJson:
        return text
