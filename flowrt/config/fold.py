"""From a block entry to its type and one table of settings (dialect 1.5 and 1.7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flowrt.config.faults import nearest, shown
from flowrt.config.nodes import Table, Text
from flowrt.errors import Fault, Position

_BASE = ("type", "name", "ref", "settings")


@dataclass(frozen=True, slots=True)
class ResolvedBlock:
    """A block entry with its `ref` followed and its settings in one place.

    Use it only when `faults` is empty. `table` is the entry as it stands in the file. In
    `settings` each key keeps the place it really has: at the entry, under its `settings:`, or in
    the processor it refers to.
    """

    type: str
    name: str
    settings: Table
    table: Table
    faults: list[Fault] = field(default_factory=list)

    @property
    def label(self) -> str:
        """What addresses call the block: its name, else the type it states, else its ref."""
        return self.name or str(self.table.get("type") or self.table.get("ref") or "")


def resolve_block(
    entry: Any,
    processors: Mapping[str, Table],
    position: Position | None = None,
    path: str = "",
) -> ResolvedBlock:
    """Fold a block entry: its processor's settings, then ``settings:`` and its other keys.

    `position` and `path` are where the entry stands, for one that is not even a mapping.
    """
    if not isinstance(entry, Table):
        if isinstance(entry, Text):
            position = entry.position
        position = position or Position("", 1, 1)
        fault = Fault(position, path, f"found {shown(entry)}", "expected a block: a mapping")
        empty = Table(position, path)
        return ResolvedBlock("", "", empty, empty, [fault])
    faults: list[Fault] = []
    type_ = _word(entry, "type", faults)
    name = _word(entry, "name", faults)
    ref = _word(entry, "ref", faults)
    own = fold_settings(entry, name or type_ or ref, faults)
    settings = own
    if ref:
        base = _processor(entry, ref, type_, processors, faults)
        if base is not None:
            type_ = str(base.get("type", ""))
            settings = _over(fold_settings(base, ref, []), own)
    elif not type_ and not faults:
        faults.append(_no_type(entry))
    return ResolvedBlock(type_, name, settings, entry, faults)


def _no_type(entry: Table) -> Fault:
    meant = {key: close for key in entry if (close := nearest(key, ("type", "ref")))}
    way_out = "".join(f"did you mean {close!r} by {key!r}?" for key, close in meant.items())
    return Fault(entry.position, entry.path, "block requires a type or a ref", way_out=way_out)


def fold_settings(entry: Table, label: str, faults: list[Fault]) -> Table:
    """The settings of a block or processor: ``settings:`` and every key that is not a base one."""
    settings = Table(entry.position, entry.path)
    written = entry.get("settings")
    if isinstance(written, Table):
        for key in written:
            settings.take(key, written)
    elif written is not None:
        faults.append(
            Fault(
                entry.value_positions["settings"],
                entry.path_of("settings"),
                f"found {shown(written)}",
                "expected a mapping",
            )
        )
    for key in entry:
        if key in _BASE:
            continue
        if key in settings:
            faults.append(
                Fault(
                    entry.key_positions[key],
                    entry.path_of(key),
                    f'block "{label}": "{key}" is given both at the top level and under settings',
                    f"the other is on line {settings.key_positions[key].line}",
                    "remove one of them",
                )
            )
        settings.take(key, entry)
    return settings


def _over(base: Table, own: Table) -> Table:
    """The settings of a processor with a block's own ones over them, key by key."""
    settings = Table(own.position, own.path)
    for key in base:
        settings.take(key, own if key in own else base)
    for key in own:
        if key not in base:
            settings.take(key, own)
    return settings


def _processor(
    entry: Table, ref: str, type_: str, processors: Mapping[str, Table], faults: list[Fault]
) -> Table | None:
    position, path = entry.value_positions["ref"], entry.path_of("ref")
    base = processors.get(ref)
    if base is None:
        close = nearest(ref, processors)
        way_out = f"did you mean {close!r}?" if close else "define it under `processors:`"
        faults.append(
            Fault(position, path, f'block ref "{ref}" is not a defined processor', way_out=way_out)
        )
        return None
    defined = base.get("type", "")
    if type_ and type_ != defined:
        faults.append(
            Fault(
                position,
                path,
                f'block ref "{ref}" is type "{defined}" but declares type "{type_}"',
                way_out="remove the `type:`",
            )
        )
    return base


def _word(entry: Table, key: str, faults: list[Fault]) -> str:
    """The text of a base key, empty where it is not given."""
    if key not in entry:
        return ""
    value = entry[key]
    if isinstance(value, str) and value:
        return str(value)
    way_out = "quote it" if isinstance(value, bool | int | float) else ""
    faults.append(
        Fault(
            entry.value_positions[key],
            entry.path_of(key),
            f"found {shown(value)}",
            "expected text",
            way_out,
        )
    )
    return ""
