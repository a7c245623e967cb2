"""`flowrt schema`: the JSON Schemas of service and suite files, made from the settings classes."""

from __future__ import annotations

import json
from typing import Any

from flowrt.cli.exits import DONE
from flowrt.config.model import EXTENSION, Document
from flowrt.engine import registry


def schema_command(suite: bool) -> int:
    """Print the schema, with the types of every installed package."""
    if suite:
        print(suite_schema_text(), end="")
        return DONE
    schema = service_schema(
        registry.blocks.names(), registry.connectors.names(), registry.sources.names()
    )
    print(_text(schema), end="")
    return DONE


def schema_text() -> str:
    """The schema as it is kept in `schemas/service.schema.json`: with flowrt's own types."""
    return _text(
        service_schema(
            registry.blocks.own_names(),
            registry.connectors.own_names(),
            registry.sources.own_names(),
        )
    )


def suite_schema_text() -> str:
    """The schema of suite files, as it is kept in `schemas/suite.schema.json`."""
    from flowrt.testing.suite.model import Suite

    schema = Suite.model_json_schema(by_alias=True, mode="validation")
    return _text(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "suite.schema.json",
            **schema,
        }
    )


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


def service_schema(
    block_types: list[str], connector_types: list[str], source_types: list[str]
) -> dict[str, Any]:
    """The schema of a service file that knows these types."""
    schema = Document.model_json_schema(by_alias=True, mode="validation")
    # Else editors would mark what the loader takes.
    schema["patternProperties"] = {f"^{EXTENSION}": {"description": "For anchors to merge from."}}
    definitions = schema.pop("$defs", {})
    blocks = {name: registry.blocks.get(name) for name in block_types}
    connectors = {name: registry.connectors.get(name) for name in connector_types}
    for name, kind in blocks.items():
        definitions[f"block-{name}"] = _typed(kind, name, definitions, block=True)
    for name, kind in connectors.items():
        definitions[f"connector-{name}"] = _typed(kind, name, definitions, block=False)
    for name in source_types:
        _add_source(name, definitions)
    definitions["block"] = _one_of("block", blocks, _BY_REF)
    definitions["connector"] = _one_of("connector", connectors)
    _open_up(definitions, list(blocks))
    schema["properties"]["connectors"]["items"] = {"$ref": "#/$defs/connector"}
    definitions["blocks"] = {"type": "array", "items": {"$ref": "#/$defs/block"}}
    definitions["subFlow"] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "A name for the reader."},
            "process": {"$ref": "#/$defs/blocks"},
        },
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "service.schema.json",
        **schema,
        "$defs": dict(sorted((name, _linked(part)) for name, part in definitions.items())),
    }


def _linked(part: Any) -> Any:
    """The part with chains, which the settings classes only mark, as references."""
    if isinstance(part, list):
        return [_linked(item) for item in part]
    if not isinstance(part, dict):
        return part
    if part.get("format") in ("blocks", "subFlow"):
        kept = {key: part[key] for key in ("description",) if key in part}
        return {"$ref": f"#/$defs/{part['format']}", **kept}
    return {key: _linked(item) for key, item in part.items()}


def _open_up(definitions: dict[str, Any], blocks: list[str]) -> None:
    """Put the real blocks where the document's own model keeps them raw."""
    flow = definitions["FlowEntry"]["properties"]
    for chain in ("process", "error"):
        described = flow[chain].get("description", "")
        flow[chain] = {"$ref": "#/$defs/blocks", "description": described}
    definitions["ProcessorEntry"]["allOf"] = [
        {
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": {
                "properties": {"settings": {"$ref": f"#/$defs/block-{name}/properties/settings"}}
            },
        }
        for name in blocks
    ]
    del definitions["ConnectorEntry"]


def _add_source(name: str, definitions: dict[str, Any]) -> None:
    """Put the settings of a source type where the document's own model keeps them raw."""
    settings = registry.sources.get(name).Settings.model_json_schema(
        by_alias=True, mode="validation", ref_template="#/$defs/{model}"
    )
    definitions.update(settings.pop("$defs", {}))
    definitions[f"source-{name}"] = settings
    chosen = definitions["Source"].setdefault("allOf", [])
    chosen.append(
        {
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": {"properties": {"settings": {"$ref": f"#/$defs/source-{name}"}}},
        }
    )


_BASE = {
    "name": {"type": "string", "description": "Its label in addresses, errors and traces."},
}

_REF = {
    "type": "string",
    "description": "A processor; its settings may be overridden.",
}

_BY_REF = {
    "type": "object",
    "required": ["ref"],
    "properties": {
        "ref": _REF,
        **_BASE,
    },
}


def _one_of(what: str, kinds: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    """By `type`, so that an editor completes the settings of the type that stands there."""
    chosen = [
        {
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": {"$ref": f"#/$defs/{what}-{name}"},
        }
        for name in kinds
    ]
    by_type = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": list(kinds), "description": f"The {what}'s type."}},
    }
    return (
        {"anyOf": [by_type, *others], "allOf": chosen} if others else {**by_type, "allOf": chosen}
    )


def _typed(kind: Any, name: str, definitions: dict[str, Any], *, block: bool) -> dict[str, Any]:
    settings = kind.Settings.model_json_schema(
        by_alias=True, mode="validation", ref_template="#/$defs/{model}"
    )
    definitions.update(settings.pop("$defs", {}))
    summary = (kind.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")
    properties = settings.get("properties", {})
    nested = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "description": "The settings; they may also stand beside `type`.",
    }
    own: dict[str, Any] = {
        "type": {"const": name, "description": summary},
        "settings": nested,
        **_BASE,
    }
    if block:
        # The settings' own `name`, as of set-variable, may only stand under `settings`.
        own = {"ref": _REF, **properties, **own}
    return {
        "type": "object",
        "description": summary,
        "properties": own,
        "additionalProperties": False,
    }
