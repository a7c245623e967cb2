"""A document against its model: what the sections hold, with blocks left raw."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from flowrt.config.checks import tables
from flowrt.config.faults import faults_from
from flowrt.config.fold import fold_settings
from flowrt.config.model import EXTENSION, Document
from flowrt.config.nodes import Items, Table
from flowrt.errors import Fault

_LISTS = ("env", "connectors", "processors", "flows")


def check_shape(document: Table, noted: list[Fault], blocking: list[Fault]) -> Document | None:
    """The document as its model, or None where it cannot be had.

    Faults inside flows are `noted`: the blocks of a flow can be checked all the same, so its
    author hears of everything at once. Others are `blocking`: what refers to a section that does
    not hold would only be blamed for it.
    """
    for key in _LISTS:
        if key in document and document[key] is None:
            document[key] = Items(document.value_positions[key], key)
    for table in tables(document.get("processors")):
        fold_settings(table, str(table.get("name", "")), noted)
        if "ref" in table:
            noted.append(_no_ref(table))
    entries = {key: value for key, value in document.items() if not key.startswith(EXTENSION)}
    try:
        return Document.model_validate(entries)
    except ValidationError as error:
        found = faults_from(error, document, Document)
    outside = [fault for fault in found if not _inside_flow(fault)]
    blocking += outside
    noted += [fault for fault in found if _inside_flow(fault)]
    if outside:
        return None
    flows = tables(document.get("flows"))
    entries["flows"] = [_sound(table, number) for number, table in enumerate(flows, 1)]
    return Document.model_validate(entries)


def _no_ref(table: Table) -> Fault:
    rule = "a processor states its `type` and cannot refer to another one"
    return Fault(table.key_positions["ref"], table.path_of("ref"), "found a `ref`", rule)


def blocks(items: Any) -> Items | None:
    """The block entries of a chain; what is no mapping was reported and is left out."""
    if not isinstance(items, Items):
        return None
    if all(isinstance(item, Table) for item in items):
        return items
    sound = Items(items.position, items.path)
    for item, position in zip(items, items.item_positions, strict=True):
        if isinstance(item, Table):
            sound.append(item)
            sound.item_positions.append(position)
    return sound


def _inside_flow(fault: Fault) -> bool:
    return fault.path.startswith(("flows.", "flows["))


def _sound(flow: Table, number: int) -> dict[str, Any]:
    """What of a flow can be relied on when something else about it is wrong."""
    name = flow.get("name")
    return {
        "name": name if isinstance(name, str) and name else f"flow-{number}",
        "process": blocks(flow.get("process")) or [],
        "error": blocks(flow.get("error")),
    }
