"""What the `source:` of a flow names: a type, and the connector it stands on (dialect 1.6)."""

from __future__ import annotations

from collections.abc import Sequence

from flowrt.config.load import Connector
from flowrt.config.nodes import Table
from flowrt.engine import registry
from flowrt.engine.site import Refusal


def source_type(table: Table, declared: Sequence[Connector]) -> str:
    """The type of a source: its connector's, where one of that name is declared, or one that is
    named in place of a connector; else its own."""
    connector, own = str(table.get("connector") or ""), str(table.get("type") or "")
    for each in declared:
        if each.name == connector:
            return each.type
    if connector and (not own or connector in registry.sources.names()):
        return connector
    return own


def connector_name(type_: str, table: Table, declared: Sequence[Connector]) -> str | None:
    """The declared connector that a source of this type stands on; None where there is none.

    Raises `Refusal` where there are several and the source names none of them, and where another
    type has taken the name of the one that would be started for it.
    """
    names = [each.name for each in declared if each.type == type_]
    asked = table.get("connector")
    if asked in names:
        return str(asked)
    if len(names) > 1:
        raise Refusal(
            (),
            f"the source is ambiguous: {len(names)} connectors are of the type {type_!r}",
            f"name one of them with `connector:`: {', '.join(names)}",
        )
    if names:
        return names[0]
    if any(each.name == type_ for each in declared) and type_ in registry.connectors.names():
        raise Refusal(
            (),
            f"no connector is of the type {type_!r}, and the one of that name is of another type",
            f"declare a connector with `type: {type_}`, or rename that one",
        )
    return None
