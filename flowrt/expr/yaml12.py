"""YAML data for `fromYaml`, as strict as the files flowrt loads: `yes` is text, and so are dates.

The scalars are those of YAML 1.2's core schema, and a number with leading zeros is text
(``02142``). Written again here rather than imported: expressions and config know nothing of each
other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from typing import Any

import yaml

MOST_VALUES = 100_000
"""Values of a document, repeated ones counted each time an alias repeats them."""

DEEPEST = 64
"""Levels of lists and maps."""

# Without libyaml the same loader works, seven times slower.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE = "tag:yaml.org,2002:"
_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?",
        "-+.0123456789",
    ),
)


class _Loader(_Base):  # type: ignore[misc]  # chosen at run time
    """A safe loader with the scalars above, unique text keys, and bounds."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in _SCALARS:
    _Loader.add_implicit_resolver(_CORE + _tag, re.compile(rf"(?:{_pattern})\Z"), list(_first))


def _integer(_: Any, node: yaml.ScalarNode) -> int:
    return int(node.value, 0 if node.value[:2] in ("0o", "0x") else 10)


def _float(_: Any, node: yaml.ScalarNode) -> float:
    return float(node.value)


_Loader.add_constructor(_CORE + "int", _integer)
_Loader.add_constructor(_CORE + "float", _float)


_AMBIGUOUS = re.compile("|".join(pattern for _, pattern, _ in _SCALARS))
_BREAKS = re.compile("[\x85\u2028\u2029\ufeff]")


class _Dumper(yaml.SafeDumper):
    """A safe dumper that also quotes what only YAML 1.2 takes for a number, and odd breaks."""

    def text(self, value: str) -> yaml.ScalarNode:
        style = '"' if _BREAKS.search(value) else "'" if _AMBIGUOUS.fullmatch(value) else None
        return self.represent_scalar(_CORE + "str", value, style)


_Dumper.add_representer(str, _Dumper.text)


def dump(value: Any) -> str:
    """The JSON value as YAML, keys sorted, which any reader takes for what it is."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, allow_unicode=True, default_flow_style=False, width=math.inf
    )
    return text.removesuffix("...\n")


def load(text: str) -> Any:
    """The value of the one document in `text`; an empty one is null.

    Raises `ValueError` for anything that is not YAML, has several documents, repeats a key or has
    one that is no text, or goes beyond `MOST_VALUES` and `DEEPEST`.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, [MOST_VALUES], 0)
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        raise ValueError(f"fromYaml: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise ValueError(f"fromYaml: nested deeper than {DEEPEST} levels") from None
    finally:
        loader.dispose()


def _check(node: yaml.Node, left: list[int], depth: int) -> None:
    left[0] -= 1
    if left[0] < 0:
        raise ValueError(f"fromYaml: more than {MOST_VALUES} values, aliases written out")
    if depth > DEEPEST:
        raise ValueError(f"fromYaml: nested deeper than {DEEPEST} levels")
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check(item, left, depth + 1)
    elif isinstance(node, yaml.MappingNode):
        seen: set[Hashable] = set()
        for key, item in node.value:
            if key.tag != _CORE + "str":
                raise ValueError(f"fromYaml: the key {key.value!r} is not text; quote it")
            if key.value in seen:
                raise ValueError(f"fromYaml: the key {key.value!r} is given twice")
            seen.add(key.value)
            _check(item, left, depth + 1)
