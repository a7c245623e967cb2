"""YAML data under the 1.2 core schema, for `fromYaml`: no booleans called `yes`, no dates."""

from __future__ import annotations

import re
from typing import Any

import yaml

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_NODES = 100_000


class _Loader(_Base):  # type: ignore[misc]  # chosen at run time: libyaml may be missing
    """`SafeLoader` with the scalars of YAML 1.2, string keys and bounded aliases."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own protocol
    made = 0

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        self.made += 1
        if self.made > MAX_NODES:
            raise ValueError(f"fromYaml: more than {MAX_NODES} nodes")
        return super().construct_object(node, deep)


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"0|-?[1-9][0-9]*|0x[0-9a-fA-F]+", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first)
    )
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^$"), [""])


def load(text: str) -> Any:
    """The one document in `text`. Raises `ValueError` for anything else."""
    try:
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"fromYaml: {error}") from error
    _check_keys(value)
    return value


def _check_keys(value: Any) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"fromYaml: the key {key!r} is not a string; quote it")
            _check_keys(item)
    elif isinstance(value, list):
        for item in value:
            _check_keys(item)
