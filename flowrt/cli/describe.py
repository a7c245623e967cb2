"""`flowrt describe TYPE`: a type's page, made from its class."""

from __future__ import annotations

import inspect
import json
from typing import Any

from flowrt.cli.exits import DONE
from flowrt.engine import registry
from flowrt.errors import CallError


def describe_command(type_: str, as_json: bool) -> int:
    """Print what the type does and its settings."""
    for kind in find_types(type_):
        if as_json:
            print(json.dumps(kind.Settings.model_json_schema(by_alias=True), ensure_ascii=False))
        else:
            print(page(type_, kind))
    return DONE


def find_types(name: str) -> list[Any]:
    """The classes of a block, connector or source type: `http` is a connector and a source.

    Raises `CallError` with the nearest name.
    """
    nearest = None
    found = []
    every = (registry.blocks, registry.connectors, registry.sources)
    for types in every:
        try:
            found.append(types.get(name))
        except registry.UnknownType as unknown:
            nearest = nearest or unknown.nearest
    if found:
        return found
    known = ", ".join(name for types in every for name in types.names())
    hint = f"did you mean {nearest!r}?" if nearest else f"the types are {known}"
    raise CallError(f"there is no type {name!r}; {hint}")


def page(name: str, kind: Any) -> str:
    """The reference page of a type, in Markdown."""
    lines = [f"# {name}", "", inspect.cleandoc(kind.__doc__ or ""), "", "## Settings", ""]
    lines += [*_rows(kind.Settings.model_json_schema(by_alias=True)), ""]
    return "\n".join(lines)


def _rows(schema: dict[str, Any]) -> list[str]:
    rows = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    rows += _properties(schema, schema, "")
    return rows


def _properties(part: dict[str, Any], schema: dict[str, Any], prefix: str) -> list[str]:
    required = part.get("required", [])
    rows = []
    for name, field in part.get("properties", {}).items():
        meaning = field.get("description", "")
        default = "required" if name in required else _default(field)
        rows.append(f"| `{prefix}{name}` | {_type(field, schema)} | {default} | {meaning} |")
        inner = _referred(field.get("items", {}), schema)
        if inner is not None:
            rows += _properties(inner, schema, f"{prefix}{name}[].")
        elif (inner := _referred(field, schema)) is not None:
            rows += _properties(inner, schema, f"{prefix}{name}.")
    return rows


def _referred(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any] | None:
    """The settings that a field holds, where it holds such."""
    reference = field.get("$ref", "")
    found: dict[str, Any] | None = schema.get("$defs", {}).get(reference.rpartition("/")[2])
    return found


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    return "" if default in (None, {}, []) else f"`{json.dumps(default)}`"


def _type(field: dict[str, Any], schema: dict[str, Any]) -> str:
    choices = [choice for choice in field.get("anyOf", [field]) if choice.get("type") != "null"]
    if len(choices) > 1:
        return " or ".join(dict.fromkeys(_type(choice, schema) for choice in choices))
    field = choices[0] if choices else field
    if field.get("format") == "cel":
        return "expression"
    chain = {"blocks": "list of blocks", "subFlow": "sub-flow"}.get(field.get("format", ""))
    if chain is not None:
        return chain
    if "enum" in field:
        return " \\| ".join(f"`{value}`" for value in field["enum"])
    if field.get("examples") == ["30s", "5m"]:
        return "duration"
    if field.get("type") == "array":
        items = field.get("items", {})
        return "list" if "$ref" in items else f"list of {_type(items, schema)}"
    kind = "object" if "$ref" in field else str(field.get("type", "any"))
    return {"object": "mapping", "integer": "int"}.get(kind, kind)
