"""Environment values in a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flowrt.config.nodes import plain
from flowrt.errors import Position

if TYPE_CHECKING:
    from tests.config.conftest import Folder

# FB-96: a password is not YAML

PASSWORDS = [
    "a: b", '"q"', "'q'", "#x", "!t", ">x", "*a", "{}", "[]", "- a", "$HOME", "${OTHER}", "${P}",
    "two\nlines", "yes", "0123", "  spaces  ", "\ttab", "@x", "`x`", "%x", "a #b", "\\n", "}", ":-",
]  # fmt: skip


@pytest.mark.parametrize("value", PASSWORDS)
@pytest.mark.parametrize(
    "written",
    ["${P}", "'${P}'", '"${P}"', "|-\n      ${P}", "['${P}']", "{k: '${P}'}"],
)
def test_a_value_arrives_exactly_as_it_is_set(folder: Folder, value: str, written: str) -> None:
    config = folder.load(
        "env: [{name: P}, {name: OTHER, default: wrong}]\n"
        f"connectors:\n  - name: c\n    type: t\n    settings:\n     p: {written}\n",
        {"P": value},
    )
    found = plain(config.connectors[0].table["settings"]["p"])
    while isinstance(found, list | dict):
        (found,) = found if isinstance(found, list) else found.values()
    assert value == found


@pytest.mark.parametrize(
    ("value", "expected"),
    [("8080", 8080), ("1.5", 1.5), ("true", True), ("null", None), ("", ""), ("1e999", "1e999")],
)
def test_a_bare_placeholder_is_json_data_of_the_type_its_value_reads_as(
    folder: Folder, value: str, expected: Any
) -> None:
    text = "env: [{name: P}]\nflows:\n  - name: a\n    process:\n"
    text += "      - v: '${P}'\n        w: ${P}\n"
    config = folder.load(text, {"P": value})
    block = plain(config.flows[0].process[0])
    assert value == block["v"]
    assert (expected, type(expected)) == (block["w"], type(block["w"]))


def test_a_bare_placeholder_keeps_its_exact_text_where_text_is_wanted(folder: Folder) -> None:
    text = "env: [{name: P}]\nservice:\n  name: ${P}\n"
    assert folder.load(text, {"P": "1.10"}).name == "1.10"


def test_a_placeholder_may_stand_where_a_number_is_wanted(folder: Folder) -> None:
    text = "env: [{name: P}]\nflows:\n  - name: a\n    workers: ${P}\n    process: []\n"
    assert folder.load(text, {"P": "7"}).flows[0].workers == 7


def test_placeholders_inside_a_text_are_replaced_once(folder: Folder) -> None:
    config = folder.load(
        "env: [{name: A}, {name: B}]\nservice: {name: 'x ${A}${B} ${ A } $A ${1} ${'}\n",
        {"A": "${B}", "B": "b"},
    )
    assert config.name == "x ${B}b ${ A } $A ${1} ${"


def test_placeholders_are_left_alone_in_env_and_resources(folder: Folder) -> None:
    folder.write("${A}.txt", "x")
    text = "env: [{name: A, default: '${B}'}]\nresources: {templates: [{resource: '${A}.txt'}]}\n"
    config = folder.load(text)
    assert (config.env.values, config.templates[0].resource) == ({"A": "${B}"}, "${A}.txt")


def test_a_secret_is_not_shown_in_the_fault_about_it(folder: Folder) -> None:
    text = "env: [{name: KEY}]\nflows:\n  - name: a\n    workers: ${KEY}\n    process: []\n"
    (fault,) = folder.faults(text, {"KEY": "hunter2"})
    assert "hunter2" not in str(fault)
    assert fault.found == "found the value of '${KEY}'"


# Names without a value


def test_a_variable_without_a_value_is_a_fault_only_where_it_is_used(folder: Folder) -> None:
    (fault,) = folder.faults("env: [{name: A}, {name: B}]\nservice: {name: 'x${A}'}\n")
    assert fault.found == 'environment variable "A" is referenced but not set and has no default'
    assert (Position(str(folder.path / "f.yaml"), 2, 17), "service.name") == (
        fault.position,
        fault.path,
    )


def test_an_undeclared_variable_is_a_fault_with_the_nearest_declared_one(folder: Folder) -> None:
    (fault,) = folder.faults("env: [{name: API_URL, default: x}]\nservice: {name: '${API_ULR}'}\n")
    assert fault.found == 'references undeclared environment variable "API_ULR"'
    assert fault.way_out == "did you mean 'API_URL'?"


def test_an_undeclared_variable_is_a_fault_even_if_the_machine_has_it(folder: Folder) -> None:
    (fault,) = folder.faults("service: {name: '${HOME}'}\n", {"HOME": "/root"})
    assert fault.way_out == "declare it under `env:`"
