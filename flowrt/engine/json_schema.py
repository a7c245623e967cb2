"""JSON Schemas that settings give: checked when the file loads, applied while flows run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from referencing import Registry, Resource

_LONGEST = 300  # characters of a fault's text, which quotes the value


class SchemaFault(ValueError):
    """The schema itself cannot be used."""


class JsonSchema:
    """A compiled JSON Schema. Without `$schema` it is read as Draft 2020-12.

    A `$ref` must lead to a place in the schema itself: nothing is ever fetched.

    Raises `SchemaFault` for what is no schema, for a reference that leads elsewhere or nowhere, and
    where the package `jsonschema` is missing.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._validator = _compile(schema)

    def fault(self, value: Any) -> str:
        """What is most wrong with a value: place, fault and rule; empty where it is fine."""
        from jsonschema.exceptions import best_match

        try:
            error = best_match(self._validator.iter_errors(value))
        except RecursionError:  # of a deep value, or of a schema that refers to itself for nothing
            return "at $: it nests too deep to be checked"
        if error is None:
            return ""
        text = error.message
        text = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
        rule = "/".join(str(part) for part in error.absolute_schema_path)
        return f"at {error.json_path}: {text} (rule {rule})"


def _compile(schema: dict[str, Any]) -> Validator:
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import Draft202012Validator, validator_for
        from referencing import Registry, Resource
        from referencing.jsonschema import DRAFT202012
    except ImportError as error:
        raise SchemaFault(
            f"a schema needs the package {error.name!r}, which is not installed: "
            "pip install 'flowrt[schema]'"
        ) from error
    named = schema.get("$schema", Draft202012Validator.META_SCHEMA["$schema"])
    unknown: Any = None
    kind: Any = validator_for({"$schema": str(named)}, default=unknown)
    if kind is None:
        raise SchemaFault(f"the dialect {named!r} is not known; leave `$schema` out")
    try:
        kind.check_schema(schema, format_checker=kind.FORMAT_CHECKER)
    except SchemaError as error:
        raise SchemaFault(f"not a JSON Schema: at {error.json_path}: {error.message}") from error
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    # Named explicitly: without a registry, jsonschema fetches what it does not know.
    registry: Registry[Any] = Registry()
    _check_references(resource, registry)
    validator: Validator = kind(schema, registry=registry)
    return validator


def _check_references(resource: Resource[Any], registry: Registry[Any]) -> None:
    from referencing.exceptions import Unresolvable

    for reference, resolver in _references(resource, registry.resolver_with_root(resource)):
        try:
            resolver.lookup(reference)
        except Unresolvable as error:
            raise SchemaFault(
                f"the reference {reference!r} leads nowhere in this schema, and none is fetched; "
                "copy what it means under $defs"
            ) from error


def _references(resource: Resource[Any], resolver: Any) -> Iterator[tuple[str, Any]]:
    """Each reference below, with what it is to be resolved against."""
    contents = resource.contents
    if isinstance(contents, dict):
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(contents.get(key), str):
                yield contents[key], resolver
    for inner in resource.subresources():
        yield from _references(inner, resolver.in_subresource(inner))
