"""YAML as it was read, with places: what the loader produces and everything later reads.

`Table`, `Items` and `Text` are a dict, a list and a str that remember where they came from.
pydantic turns `Text` into plain str for ordinary fields, and hands it on whole to the validators
of ours (expressions, chains) that need the place.
"""

from __future__ import annotations

from typing import Any

from flowrt.errors import Position


class Text(str):
    """A string scalar with its place. `literal` is true for quoted and block scalars."""

    position: Position
    literal: bool

    def __new__(cls, value: str, position: Position, literal: bool = False) -> Text:
        self = super().__new__(cls, value)
        self.position = position
        self.literal = literal
        return self


class Table(dict[str, Any]):
    """A mapping with places: of itself, of each key and of each value.

    `path` is how a reader names it, such as ``flows.chat.process[0]``; empty for the document.
    """

    __slots__ = ("key_positions", "path", "position", "value_positions")

    def __init__(self, position: Position, path: str = "") -> None:
        super().__init__()
        self.position = position
        self.path = path
        self.key_positions: dict[str, Position] = {}
        self.value_positions: dict[str, Position] = {}

    def put(self, key: str, value: Any, key_position: Position, value_position: Position) -> None:
        """Add one entry with its places."""
        self[key] = value
        self.key_positions[key] = key_position
        self.value_positions[key] = value_position


class Items(list[Any]):
    """A sequence with places: of itself and of each item."""

    __slots__ = ("item_positions", "path", "position")

    def __init__(self, position: Position, path: str = "") -> None:
        super().__init__()
        self.position = position
        self.path = path
        self.item_positions: list[Position] = []


def plain(value: Any) -> Any:
    """The value as ordinary dict, list and str, for what outlives the loading."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Text) else value
