"""From pydantic's errors to faults with a place, for the document and for settings of any kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from flowrt.config.nodes import Items, Table, Text, cut
from flowrt.errors import Fault, Position

_WANTED = {
    "string_type": "text",
    "string_sub_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "nothing",
    "finite_number": "a finite number",
}
_LIMITS = {
    "greater_than": ("more than {gt}", "gt"),
    "greater_than_equal": ("at least {ge}", "ge"),
    "less_than": ("less than {lt}", "lt"),
    "less_than_equal": ("at most {le}", "le"),
}

_NO_SPACE = re.compile(r"[A-Za-z_][\w-]*:\S")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was most likely meant, or None where none is close."""
    known = list(known)
    by_letters = {_letters(candidate): candidate for candidate in known}
    if (same := by_letters.get(_letters(name))) is not None:
        return same if same != name else None
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    if not close:
        close = [by_letters[key] for key in get_close_matches(_letters(name), by_letters, 1, 0.7)]
    return close[0] if close else None


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def faults_from(
    error: ValidationError, table: Table, model: type[BaseModel] | None = None
) -> list[Fault]:
    """The faults of a table that did not validate, each at the key or value it is about.

    `model` is the class that was validated: it gives the known keys for an unknown one. Errors of
    a union about one value become one fault. Texts of our own validators are kept as they are.
    """
    spots: dict[tuple[str, str], _Spot] = {}
    for details in error.errors(include_url=False):
        spot = _spot(details, table, model)
        key = (spot.path, "type" if spot.wanted else f"{spot.found}{spot.rule}")
        if (other := spots.get(key)) is not None and spot.wanted:
            wanted = dict.fromkeys((*other.wanted, *spot.wanted))
            spots[key] = other._replace(wanted=tuple(wanted))
        else:
            spots[key] = spot
    return [spot.fault() for spot in _likeliest(list(spots.values()))]


class _Spot(NamedTuple):
    position: Position
    path: str
    found: str
    rule: str = ""
    way_out: str = ""
    wanted: tuple[str, ...] = ()
    container: bool = False

    def fault(self) -> Fault:
        rule = f"expected {' or '.join(self.wanted)}" if self.wanted else self.rule
        return Fault(self.position, self.path, self.found, rule, self.way_out)


def _likeliest(spots: list[_Spot]) -> list[_Spot]:
    """Drop what other members of a union said about a mapping or list that one of them read."""

    def is_below(spot: _Spot, path: str) -> bool:
        return spot.path.startswith((f"{path}.", f"{path}["))

    return [
        spot
        for spot in spots
        if not (
            spot.wanted and spot.container and any(is_below(other, spot.path) for other in spots)
        )
    ]


class _Walk:
    """Follows an error's location as far as the file goes.

    What pydantic puts between, such as the member of a union it tried, is not in the file and is
    passed over.
    """

    def __init__(self, table: Table, model: type[BaseModel] | None) -> None:
        self.node: Any = table
        self.owner = table
        self.position = table.position
        self.key_position = table.position
        self.path = table.path
        self.models: list[type[BaseModel]] = [model] if model else []
        self.by_name = False

    def follow(self, loc: tuple[int | str, ...]) -> None:
        for part in loc:
            if isinstance(self.node, Table):
                if isinstance(part, str) and part in self.node:
                    self._enter_key(part)
                else:
                    self._narrow(part)
            elif isinstance(self.node, Items) and isinstance(part, int) and part < len(self.node):
                self._enter_index(part)
            else:
                self._narrow(part)

    def _enter_key(self, key: str) -> None:
        table = self.node
        self.owner = table
        self.path = table.path_of(key)
        self.position = table.value_positions[key]
        self.key_position = table.key_positions[key]
        self.node = table[key]
        if self.by_name:
            # The key is a name that the author chose, such as an address, and not one of a model.
            self.by_name = False
            return
        annotations = [_annotation(model, key) for model in self.models]
        self.models = [found for each in annotations for found in _models_in(each)]
        self.by_name = any(_has_names(each) for each in annotations)

    def _enter_index(self, index: int) -> None:
        items = self.node
        self.node = items[index]
        named = self.node.path if isinstance(self.node, Table | Items) else ""
        self.path = named or f"{self.path}[{index}]"
        self.position = self.key_position = items.item_positions[index]

    def _narrow(self, part: int | str) -> None:
        """A union member's name leaves only the keys of that member."""
        chosen = [model for model in self.models if model.__name__ == part]
        self.models = chosen or self.models


def _annotation(model: type[BaseModel], key: str) -> Any:
    for name, field in model.model_fields.items():
        if key in (field.alias or name, field.validation_alias):
            return field.annotation
    return None


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _has_names(annotation: Any) -> bool:
    """Whether a field is a mapping from names to something else."""
    return get_origin(annotation) is dict or any(map(_has_names, get_args(annotation)))


def known_keys(model: type[BaseModel]) -> list[str]:
    """The keys of a model as YAML writes them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _spot(details: ErrorDetails, table: Table, model: type[BaseModel] | None) -> _Spot:
    loc, kind = details["loc"], details["type"]
    walk = _Walk(table, model)
    if kind == "missing":
        walk.follow(loc[:-1])
        return _Spot(walk.position, walk.path, f"missing key {str(loc[-1])!r}")
    if kind == "extra_forbidden":
        return _unknown_key(walk, loc)
    walk.follow(loc)
    context = details.get("ctx", {})
    if kind in ("value_error", "assertion_error"):
        return _Spot(walk.position, walk.path, str(context.get("error", details["msg"])))
    value = walk.node
    found = f"found {shown(value)}"
    if kind in _WANTED:
        container = isinstance(value, Table | Items)
        way_out = "quote it" if kind == "string_type" and _is_bare(value) else ""
        if kind == "list_type" and isinstance(value, Table):
            way_out = _dash(next(iter(value), ""))
        if _WANTED[kind] == "a mapping" and isinstance(value, Text):
            way_out = "put a space after the ':'" if _NO_SPACE.match(value) else ""
        return _Spot(
            walk.position, walk.path, found, "", way_out, (_WANTED[kind],), container
        )  # fmt: skip
    rule, way_out = _rule(kind, context, value, details["msg"])
    if rule:
        return _Spot(walk.position, walk.path, found, rule, way_out)
    return _Spot(walk.position, walk.path, details["msg"])


def _rule(kind: str, context: dict[str, Any], value: Any, message: str) -> tuple[str, str]:
    """The rule that was broken and the way out; empty for the ready texts of our validators."""
    if kind in _LIMITS:
        text, name = _LIMITS[kind]
        return "expected " + text.format(**{name: context[name]}), ""
    if kind in ("literal_error", "enum"):
        expected = str(context["expected"])
        close = nearest(str(value), re.findall(r"'([^']*)'", expected))
        return f"expected {expected}", f"did you mean {close!r}?" if close else ""
    if kind in ("string_too_short", "too_short") and context.get("min_length") == 1:
        return "it must not be empty", ""
    if message.startswith(("Input should ", "String should ", "Value should ")):
        return "it should " + message.split(" should ", 1)[1], ""
    return "", ""


def _unknown_key(walk: _Walk, loc: tuple[int | str, ...]) -> _Spot:
    *parents, last = loc
    walk.follow(tuple(parents))
    key = str(last)
    known = list(dict.fromkeys(key for model in walk.models for key in known_keys(model)))
    walk.follow((last,))
    rule = f"known keys: {', '.join(known)}" if known else ""
    close = nearest(key, known)
    way_out = f"did you mean {close!r}?" if close else ""
    if key[1:].strip() in known:
        way_out = _dash(key) or way_out
    return _Spot(walk.key_position, walk.path, f"unknown key {key!r}", rule, way_out)


def _dash(key: str) -> str:
    """The way out where a list item was written without the space, such as ``-name: x``."""
    name = key[1:].strip()
    return f"a list item needs a space after the dash: `- {name}:`" if key[:1] == "-" else ""


def shown(value: Any) -> str:
    """A value in an error text. What came from the environment is not shown: it may be secret."""
    if isinstance(value, Text) and value.origin:
        return f"the value of {cut(value.origin)}"
    if isinstance(value, Table):
        return "a mapping"
    if isinstance(value, Items):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    return cut(str(value)) if isinstance(value, str) else repr(value)


def _is_bare(value: Any) -> bool:
    return isinstance(value, bool | int | float)
