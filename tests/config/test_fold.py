"""Block entries: `ref`, `settings:` and keys beside it."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.config.fold import ResolvedBlock, resolve_block
from flowrt.config.nodes import Table
from flowrt.config.yaml import load_yaml
from flowrt.errors import Position

PROCESSORS = "processors:\n  - {name: out, type: log, settings: {message: a, level: info}}\n"


def resolve(block: str) -> ResolvedBlock:
    document = load_yaml(f"{PROCESSORS}blocks:\n  - {block}\n", "f.yaml")
    processors: dict[str, Table] = {table["name"]: table for table in document["processors"]}
    return resolve_block(document["blocks"][0], processors)


def texts(block: str) -> list[str]:
    return [fault.found for fault in resolve(block).faults]


@pytest.mark.parametrize(
    "block",
    [
        "{type: log, message: a, level: b}",
        "{type: log, settings: {message: a, level: b}}",
        "{type: log, message: a, settings: {level: b}}",
    ],
)
def test_settings_may_stand_beside_the_type_or_under_settings(block: str) -> None:
    resolved = resolve(block)
    assert (resolved.type, resolved.name, resolved.faults) == ("log", "", [])
    assert resolved.settings == {"message": "a", "level": "b"}


def test_a_key_in_both_places_is_refused_with_the_other_line() -> None:
    (fault,) = resolve("{type: log, name: x, settings: {k: 1}, k: 2}").faults
    assert fault.found == 'block "x": "k" is given both at the top level and under settings'
    assert fault.rule == "the other is on line 4"
    assert Position("f.yaml", 4, 44) == fault.position


def test_a_ref_takes_type_and_settings_and_its_own_settings_override() -> None:
    resolved = resolve("{ref: out, name: say, level: warn, more: 1}")
    assert (resolved.type, resolved.name, resolved.faults) == ("log", "say", [])
    assert resolved.settings == {"message": "a", "level": "warn", "more": 1}


def test_each_setting_keeps_the_place_and_path_it_really_has() -> None:
    settings = resolve("{ref: out, settings: {level: warn}}").settings
    assert Position("f.yaml", 2, 39) == settings.key_positions["message"]
    assert settings.path_of("message") == "processors.out.settings.message"
    assert Position("f.yaml", 4, 34) == settings.value_positions["level"]
    assert settings.path_of("level") == "blocks[0].settings.level"
    assert (settings.path, settings.path_of("other")) == ("blocks[0]", "blocks[0].other")


def test_a_ref_may_repeat_its_type() -> None:
    assert texts("{ref: out, type: log}") == []


def test_a_ref_of_another_type_is_refused() -> None:
    assert texts("{ref: out, type: if}") == ['block ref "out" is type "log" but declares type "if"']


def test_an_unknown_ref_is_refused_with_the_nearest_name() -> None:
    (fault,) = resolve("{ref: outt}").faults
    assert fault.found == 'block ref "outt" is not a defined processor'
    assert fault.way_out == "did you mean 'out'?"
    assert Position("f.yaml", 4, 11) == fault.position


def test_a_block_without_type_and_ref_is_refused() -> None:
    assert texts("{message: a}") == ["block requires a type or a ref"]


def test_a_misspelt_type_is_recognized() -> None:
    (fault,) = resolve("{tpye: log, message: a}").faults
    assert fault.way_out == "did you mean 'type' by 'tpye'?"


@pytest.mark.parametrize("block", ["hello", "5", "[a]", "null", "true"])
def test_what_is_no_mapping_is_no_block(block: str) -> None:
    (fault,) = resolve(block).faults
    assert fault.rule == "expected a block: a mapping"


def test_the_place_of_what_is_no_block_may_be_given() -> None:
    (fault,) = resolve_block(5, {}, Position("f", 3, 4), "a[0]").faults
    assert str(fault) == "f:3:4 a[0]: found 5; expected a block: a mapping"


@pytest.mark.parametrize("block", ["{type: 5}", "{type: ''}", "{type: [a]}", "{type: null}"])
def test_a_type_is_text(block: str) -> None:
    (fault,) = resolve(block).faults
    assert (fault.path, fault.rule) == ("blocks[0].type", "expected text")


def test_settings_are_a_mapping() -> None:
    (fault,) = resolve("{type: log, settings: [a]}").faults
    assert str(fault) == "f.yaml:4:27 blocks[0].settings: found a list; expected a mapping"


def test_empty_settings_are_none() -> None:
    assert (resolve("{type: log, settings: }").settings, texts("{type: log, settings: }")) == (
        {},
        [],
    )


def test_resolving_changes_nothing_of_the_entry() -> None:
    resolved: Any = resolve("{ref: out, level: warn}")
    assert resolved.table == {"ref": "out", "level": "warn"}


@pytest.mark.parametrize(
    ("block", "label"),
    [("{ref: out}", "out"), ("{type: log, ref: out}", "log"), ("{ref: out, name: n}", "n")],
)
def test_a_block_is_known_by_its_name_else_its_own_type_else_its_ref(
    block: str, label: str
) -> None:
    assert label == resolve(block).label
