"""What `env:` declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flowrt.errors import ConfigError

if TYPE_CHECKING:
    from tests.config.conftest import Folder


# FB-98: unset means empty

REQUIRED = (
    "env:\n"
    "  - {name: A, required: true}\n"
    "  - {name: B, required: true, default: x}\n"
    "  - name: C\n"
    "    required: true\n"
)


def test_all_missing_required_variables_are_reported_with_their_lines(folder: Folder) -> None:
    found = folder.faults(REQUIRED + "service: {name: '${A}'}\n")
    assert [(fault.position.line, fault.found) for fault in found if fault.position] == [
        (2, 'required environment variable "A" is not set'),
        (3, 'required environment variable "B" is not set'),
        (4, 'required environment variable "C" is not set'),
    ]
    assert found[1].rule == "a default does not count as set"
    assert found[2].path == "env.C"


def test_a_missing_variable_says_where_it_was_looked_for(folder: Folder) -> None:
    folder.write("there.env", "X=1")
    with pytest.raises(ConfigError) as caught:
        folder.load(REQUIRED, env_file="there.env")
    assert (
        caught.value.faults[0].way_out
        == "set it in the environment or in one of: there.env, .env (does not exist)"
    )


def test_an_empty_value_is_set(folder: Folder) -> None:
    config = folder.load(REQUIRED, {"A": "", "B": "", "C": ""})
    assert config.env.values == {"A": "", "B": "", "C": ""}


def test_an_empty_default_is_a_value_and_no_default_is_none(folder: Folder) -> None:
    config = folder.load("env: [{name: A, default: ''}, {name: B}, {name: C, default: }]\n")
    assert config.env.values == {"A": ""}
    assert {"B", "C"} == config.env.unset


def test_a_default_is_taken_as_it_is_written(folder: Folder) -> None:
    text = "env: [{name: A, default: '}:-${X}'}, {name: B, default: 1.10}, {name: C, default: true}"
    config = folder.load(text + ", {name: D, default: 8080}, {name: E, default: 0x1F}]\n")
    expected = {"A": "}:-${X}", "B": "1.10", "C": "true", "D": "8080", "E": "0x1F"}
    assert expected == config.env.values


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{default: x}", "env[0]: missing key 'name'"),
        ("{name: 'a b'}", "env.a b.name: found 'a b'; it should match pattern"),
        ("{name: A, default: [x]}", "env.A.default: found a list; expected text or"),
        ("{name: A, required: maybe}", "env.A.required: found 'maybe'; expected true or false"),
        ("A", "env[0]: found 'A'; expected a mapping"),
    ],
)
def test_a_bad_declaration_is_shown(folder: Folder, entry: str, expected: str) -> None:
    (fault,) = folder.faults(f"env:\n  - {entry}\n")
    assert expected in str(fault)


# FB-93: two entries with one name


def test_a_variable_declared_twice_in_one_file_is_refused_with_both_lines(folder: Folder) -> None:
    (fault,) = folder.faults("env:\n  - {name: A, default: 1}\n  - {name: A, default: 2}\n")
    assert fault.found == 'environment variable "A" is defined more than once'
    assert f"first at {folder.path / 'f.yaml'}:2:12" == fault.rule
