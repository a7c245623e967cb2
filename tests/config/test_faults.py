"""Faults from pydantic: the place, and a text for a person."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from flowrt.config.faults import faults_from, nearest
from flowrt.config.nodes import Table, Text
from flowrt.config.yaml import load_yaml
from flowrt.errors import Fault, Position


def _even(value: int) -> int:
    if value % 2:
        raise ValueError(f"{value} is odd")
    return value


def _refuse(value: Any) -> Any:
    raise PydanticCustomError("own", "expected {what}, as ever", {"what": "better"})


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Tool(Model):
    name: str
    max_calls: int = Field(1, alias="maxCalls", ge=1, le=9)


class Other(Model):
    kind: Literal["other"]
    size: int


class Third(Model):
    kind: Literal["third"]
    size: int


class Agent(Model):
    prompt: str = ""
    iterations: int = Field(8, alias="maxIterations")
    tools: list[Tool] = []
    level: Literal["debug", "info"] = "info"
    even: Annotated[int, AfterValidator(_even)] = 0
    own: Annotated[Any, AfterValidator(_refuse)] = None
    either: str | list[str] = ""
    one: Tool | list[Tool] | None = None
    tagged: Annotated[Other | Third, Field(discriminator="kind")] | None = None
    on: bool = False
    name: str = Field("x", min_length=1)


def check(text: str) -> list[Fault]:
    table: Table = load_yaml(text, "f.yaml")
    try:
        Agent.model_validate(table)
    except ValidationError as error:
        return faults_from(error, table, Agent)
    return []


def only(text: str) -> str:
    (fault,) = check(text)
    return str(fault)


def test_an_unknown_key_is_shown_at_the_key_with_the_nearest_known_one() -> None:
    (fault,) = check("prompt: a\nmaxIteration: 3\n")
    assert Position("f.yaml", 2, 1) == fault.position
    assert fault.found == "unknown key 'maxIteration'"
    assert fault.rule.startswith("known keys: prompt, maxIterations, tools, level")
    assert fault.way_out == "did you mean 'maxIterations'?"


def test_an_unknown_key_deep_in_a_list_knows_the_keys_of_its_place() -> None:
    assert only("tools:\n  - {name: a, maxcalls: 3}\n") == (
        "f.yaml:2:15 tools[0].maxcalls: unknown key 'maxcalls'; known keys: name, maxCalls; "
        "did you mean 'maxCalls'?"
    )


def test_a_dash_without_a_space_is_explained() -> None:
    (fault,) = check("-name: x\n")
    assert fault.way_out == "a list item needs a space after the dash: `- name:`"


def test_without_a_model_an_unknown_key_is_still_shown() -> None:
    table = load_yaml("nope: 1\n", "f.yaml")
    with pytest.raises(ValidationError) as caught:
        Agent.model_validate(table)
    assert [str(fault) for fault in faults_from(caught.value, table)] == [
        "f.yaml:1:1 nope: unknown key 'nope'"
    ]


def test_a_missing_key_is_shown_at_the_table_that_lacks_it() -> None:
    assert only("tools:\n  - maxCalls: 1\n") == "f.yaml:2:5 tools[0]: missing key 'name'"


def test_a_wrong_type_is_shown_at_the_value_with_what_was_found() -> None:
    assert (
        only("maxIterations: many\n")
        == "f.yaml:1:16 maxIterations: found 'many'; expected a whole number"
    )


@pytest.mark.parametrize(
    ("value", "found"),
    [("[a]", "a list"), ("{a: 1}", "a mapping"), ("null", "nothing"), ("1.5", "1.5")],
)
def test_what_was_found_is_named(value: str, found: str) -> None:
    assert f"found {found}; expected a whole number" in only(f"maxIterations: {value}\n")


def test_a_long_text_is_cut() -> None:
    assert len(only(f"maxIterations: {'x' * 500}\n")) < 140


@pytest.mark.parametrize("value", ["12", "true", "1.5"])
def test_a_scalar_in_place_of_a_text_is_said_to_be_quoted(value: str) -> None:
    assert f"f.yaml:1:9 prompt: found {value}; expected text; quote it" == only(
        f"prompt: {value}\n"
    )


def test_a_value_out_of_a_list_of_words_names_them_and_the_nearest() -> None:
    assert only("level: inf\n") == (
        "f.yaml:1:8 level: found 'inf'; expected 'debug' or 'info'; did you mean 'info'?"
    )


def test_a_number_out_of_bounds_names_the_bound() -> None:
    assert "found 0; expected at least 1" in only("tools: [{name: a, maxCalls: 0}]\n")
    assert "found 10; expected at most 9" in only("tools: [{name: a, maxCalls: 10}]\n")


def test_an_empty_text_is_named() -> None:
    assert only("name: ''\n") == "f.yaml:1:7 name: found ''; it must not be empty"


def test_a_text_of_a_validator_of_ours_is_kept() -> None:
    assert only("even: 3\n") == "f.yaml:1:7 even: 3 is odd"
    assert only("own: 3\n") == "f.yaml:1:6 own: expected better, as ever"


def test_the_members_of_a_union_become_one_fault() -> None:
    assert only("either: 5\n") == "f.yaml:1:9 either: found 5; expected text or a list; quote it"


def test_a_union_reports_the_member_that_was_meant() -> None:
    assert [
        fault.path.split("[")[0].split(".")[0]
        for fault in check("tools: [{name: 1}]\none: {name: 1}\n")
    ] == ["tools", "one"]
    assert only("one: {name: 1}\n") == "f.yaml:1:13 one.name: found 1; expected text; quote it"
    assert only("one: [{name: 1}]\n") == "f.yaml:1:14 one[0].name: found 1; expected text; quote it"


def test_an_unknown_key_in_a_union_knows_the_keys_of_its_member() -> None:
    assert "did you mean 'maxCalls'?" in only("one: {name: a, maxCals: 1}\n")


def test_a_discriminated_union_reports_inside_its_member() -> None:
    assert (
        only("tagged: {kind: other, size: x}\n")
        == "f.yaml:1:29 tagged.size: found 'x'; expected a whole number"
    )


def test_an_unknown_discriminator_names_what_is_known() -> None:
    text = only("tagged: {kind: nope, size: 1}\n")
    assert "'other'" in text
    assert "'third'" in text


def test_all_faults_are_reported() -> None:
    assert len(check("nope: 1\nmaxIterations: x\ntools: [{}]\neven: 1\n")) == 4


def test_a_value_from_the_environment_is_not_shown() -> None:
    table = load_yaml("maxIterations: x\n", "f.yaml")
    table["maxIterations"] = Text(
        "hunter2", table.value_positions["maxIterations"], origin="${KEY}"
    )
    with pytest.raises(ValidationError) as caught:
        Agent.model_validate(table)
    (fault,) = faults_from(caught.value, table, Agent)
    assert fault.found == "found the value of '${KEY}'"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("promt", "prompt"),
        ("max_iterations", "maxIterations"),
        ("maxiterations", "maxIterations"),
        ("iterations", "maxIterations"),
        ("zzz", None),
        ("", None),
        ("prompt", None),
    ],
)
def test_the_nearest_known_name_is_what_was_likely_meant(name: str, expected: str | None) -> None:
    assert expected == nearest(name, ["prompt", "maxIterations", "tools"])
