"""JSON Schemas of settings: what is no schema fails the load, what breaks one is named."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.engine.json_schema import JsonSchema, SchemaFault

ORDER = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
    "required": ["items"],
    "$defs": {"item": {"type": "object", "properties": {"price": {"type": "number"}}}},
}


def test_a_value_that_fits_has_no_fault() -> None:
    assert not JsonSchema(ORDER).fault({"items": [{"price": 1.5}, {}]})


def test_a_fault_names_the_place_and_the_rule() -> None:
    fault = JsonSchema(ORDER).fault({"items": [{"price": 1}, {"price": "x"}]})
    assert fault.startswith("at $.items[1].price: 'x' is not of type 'number' (rule ")
    assert fault.endswith("price/type)")


def test_a_fault_of_a_large_value_is_cut_short() -> None:
    assert len(JsonSchema({"type": "object"}).fault("x" * 1_000_000)) < 400


def test_a_value_that_nests_too_deep_is_a_fault() -> None:
    tree = {"items": {"$ref": "#"}}
    value: list[Any] = []
    for _ in range(900):
        value = [value]
    assert "at $: it nests too deep to be checked" == JsonSchema(tree).fault(value)
    assert "at $: it nests too deep to be checked" == JsonSchema({"$ref": "#"}).fault(1)


def test_a_schema_without_rules_takes_everything() -> None:
    assert not JsonSchema({}).fault(None)


def test_a_recursive_schema_and_one_with_an_id_of_its_own_are_fine() -> None:
    tree = {
        "$id": "https://example.test/tree",
        "type": "object",
        "properties": {
            "children": {"type": "array", "items": {"$ref": "#"}},
            "other": {"$ref": "https://example.test/tree"},
        },
    }
    assert not JsonSchema(tree).fault({"children": [{"children": []}]})
    assert JsonSchema(tree).fault({"children": [{"children": 1}]})


def test_an_older_dialect_is_applied_as_such() -> None:
    draft4 = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "minimum": 1,
        "exclusiveMinimum": True,
    }
    assert JsonSchema(draft4).fault(1)


def test_a_property_that_is_called_like_a_keyword_is_no_reference() -> None:
    schema = {"properties": {"$ref": {"type": "string"}}, "const": {"$ref": "http://x.test/"}}
    assert not JsonSchema(schema).fault({"$ref": "http://x.test/"})


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "text"}, "not a JSON Schema: at $.type: "),
        ({"properties": []}, "not a JSON Schema: at $.properties: "),
        ({"required": "id"}, "not a JSON Schema: at $.required: "),
        ({"pattern": "("}, "not a JSON Schema: at $.pattern: "),
        ({"$ref": "http://127.0.0.1:9/s.json"}, "'http://127.0.0.1:9/s.json' leads nowhere"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "leads nowhere"),
        ({"items": {"$ref": "other.json"}}, "'other.json' leads nowhere"),
        ({"items": {"$ref": "file:///etc/passwd"}}, "leads nowhere"),
        ({"anyOf": [{"not": {"$ref": "#/$defs/no"}}]}, "'#/$defs/no' leads nowhere"),
        ({"$dynamicRef": "#nobody"}, "'#nobody' leads nowhere"),
        ({"$schema": "http://json-schema.org/draft-99/schema"}, "is not known"),
        ({"$schema": 7}, "is not known"),
    ],
)
def test_what_is_no_usable_schema_is_refused(schema: dict[str, Any], text: str) -> None:
    with pytest.raises(SchemaFault) as found:
        JsonSchema(schema)
    assert text in str(found.value)
