"""Where a reader of YAML is, so that a fault in a half-read document has a path too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from flowrt.config.nodes import NAMED, Items, Table
from flowrt.errors import Fault

_LONGEST = 200


class Step(NamedTuple):
    """One step on the way from the root to a node: the table or list, and where in it."""

    owner: Table | Items | None
    part: str | int


class Found(NamedTuple):
    """A fault whose path is not known before the names of what it stands in are read."""

    trail: tuple[Step, ...]
    fault: Fault

    def placed(self) -> Fault:
        """The fault, with its path."""
        return replace(self.fault, path=path_of(self.trail))


def path_of(trail: Sequence[Step]) -> str:
    """The path of the last step, such as ``flows.chat.process[0]``."""
    path = ""
    for depth, step in enumerate(trail):
        part = step.part
        if isinstance(step.owner, Table):
            path = f"{path}.{part}" if path and part else f"{path}{part}"
            continue
        if step.owner is None:
            continue
        inner = trail[depth + 1].owner if depth + 1 < len(trail) else None
        name = inner.get("name") if isinstance(inner, Table) else None
        if depth == 1 and trail[0].part in NAMED and isinstance(name, str) and name:
            path = f"{path}.{name}"
        else:
            path = f"{path}[{part}]"
    return path if len(path) <= _LONGEST else f"{path[:_LONGEST]}…"
