"""The `env:` section: which variables the document declares."""

from __future__ import annotations

from pydantic import ValidationError

from flowrt.config.checks import defined_twice
from flowrt.config.env import Declaration, looks_secret
from flowrt.config.faults import faults_from, shown
from flowrt.config.model import EnvVariable
from flowrt.config.nodes import Items, Table
from flowrt.errors import Fault


def declarations(document: Table, faults: list[Fault]) -> list[Declaration]:
    """The declared variables, each once.

    Several files of one service may declare the same variable, the first one counts (dialect 1.2);
    twice in one file is a fault (FB-93).
    """
    entries = document.get("env")
    if not isinstance(entries, Items):
        return []
    found: dict[str, Declaration] = {}
    for index, table in enumerate(entries):
        declared = _declaration(entries, index, table, faults)
        if declared is None:
            continue
        first = found.setdefault(declared.name, declared)
        if first is not declared and first.position.file == declared.position.file:
            faults.append(
                defined_twice(
                    "environment variable",
                    declared.name,
                    declared.position,
                    declared.path,
                    first.position,
                )
            )
    return list(found.values())


def _declaration(
    entries: Items, index: int, table: object, faults: list[Fault]
) -> Declaration | None:
    if not isinstance(table, Table):
        position = entries.item_positions[index]
        fault = Fault(position, f"env[{index}]", f"found {shown(table)}", "expected a mapping")
        faults.append(fault)
        return None
    try:
        variable = EnvVariable.model_validate(table)
    except ValidationError as error:
        faults += faults_from(error, table, EnvVariable)
        return None
    default = table.get("default")
    if default is not None:
        # As it is written: `default: 1.10` is the text 1.10, not 1.1.
        default = table.sources.get("default", str(default))
    secret = looks_secret(variable.name) if variable.secret is None else variable.secret
    position = table.value_positions["name"]
    return Declaration(variable.name, default, variable.required, secret, position, table.path)
