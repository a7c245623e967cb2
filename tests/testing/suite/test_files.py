"""Suite files: where they are found, what service they are for, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from flowrt.errors import CallError, ConfigError
from flowrt.testing.suite.load import find_suites, load_suite
from tests.testing.suite.suites import COUNTING, run, told, write

CASE: dict[str, Any] = {"name": "it", "input": {"data": {"n": 1}}}


def test_a_folder_stands_for_every_suite_in_it(tmp_path: Path) -> None:
    for name in ("a_test.yaml", "b/c_test.yml", "b/c.yaml", ".hidden/d_test.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = find_suites([str(tmp_path), str(tmp_path / "a_test.yaml")])
    assert ["a_test.yaml", "b/c_test.yml"] == [str(p.relative_to(tmp_path)) for p in found]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nowhere", "there is no suite file or folder"),
        ("a.yaml", "its name must end in _test.yaml"),
        ("empty", "no *_test.yaml files"),
    ],
)
def test_a_path_that_is_no_suite_is_the_callers_fault(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CallError, match=text.replace("*", r"\*")):
        find_suites([str(tmp_path / name)])


def test_a_suite_is_for_the_file_of_its_name_else_for_its_folder(tmp_path: Path) -> None:
    path = write(tmp_path, COUNTING, {"flow": "main", "cases": [CASE]}, "chat")
    assert tmp_path / "chat.yaml" == load_suite(path).config
    (tmp_path / "chat.yaml").rename(tmp_path / "other.yaml")
    assert tmp_path == load_suite(path).config
    assert Path("given.yaml") == load_suite(path, "given.yaml").config


@pytest.mark.parametrize(
    ("suite", "texts"),
    [
        ({"flow": "main"}, ["missing key 'cases'"]),
        ({"flow": "main", "cases": []}, ["cases"]),
        (
            {"flow": "main", "cases": [{**CASE, "expct": {}}]},
            ["'expct'", "'expect'", ":7:3 cases[0].expct"],
        ),
        ({"flow": "main", "cases": [CASE, CASE]}, ["two cases are called 'it'", "first at"]),
        (
            {"flow": "main", "inputs": {"one": {}}, "cases": [{"name": "it", "input": "oen"}]},
            ["there is no input 'oen'", "did you mean 'one'?"],
        ),
        (
            {"flow": "main", "cases": [{**CASE, "mocks": {"main.step": None}}]},
            ["null lifts a mock of the suite", "'main.step'"],
        ),
        ({"flow": "main", "cases": [{**CASE, "turns": [{}]}]}, ["has input in each turn"]),
        (
            {"flow": "main", "cases": [{**CASE, "expect": {"error": "x", "body": 1}}]},
            ["error goes with nothing else, found body"],
        ),
        (
            {"flow": "main", "cases": [{**CASE, "expect": {"that": ["body."]}}]},
            ["does not compile"],
        ),
        (
            {"flow": "main", "models": {"m": [{"when": "requst.x"}]}, "cases": [CASE]},
            ["did you mean 'request'"],
        ),
        (
            {"flow": "main", "models": {"m": [{"text": "a", "usag": {}}]}, "cases": [CASE]},
            ["'usag'", "'usage'"],
        ),
        ({"flow": "main", "now": "yesterday", "cases": [CASE]}, ["now"]),
        ({"flow": "main", "mocks": {"main.step": {}}, "cases": [CASE]}, ["a mock needs cases"]),
    ],
)
def test_what_is_wrong_with_a_suite_is_said_with_its_place(
    suite: Any, texts: list[str], tmp_path: Path
) -> None:
    path = write(tmp_path, COUNTING, suite)
    with pytest.raises(ConfigError) as raised:
        load_suite(path)
    assert str(path) in str(raised.value)
    for text in texts:
        assert text in str(raised.value)


async def test_env_of_a_case_goes_before_the_suites_and_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A", "shell")
    monkeypatch.setenv("D", "shell")
    names = ["A", "B", "C", "D"]
    service = {
        "service": {"name": "s"},
        "env": [{"name": name} for name in names],
        "flows": [
            {"name": "main", "process": [{"type": "set-payload", "value": "env"}]},
        ],
    }
    case = {
        "name": "it",
        "env": {"C": "case"},
        "expect": {"body": {"A": "file", "B": "suite", "C": "case", "D": "shell"}},
    }
    suite = {"flow": "main", "env": {"B": "suite", "C": "suite"}, "cases": [case]}
    env = {"A": "file", "B": "file"}
    (result,) = await run(tmp_path, service, suite, env=env)
    assert "passed" == result.status, told(result)


async def test_numbers_and_flags_in_env_are_the_text_a_shell_would_set(tmp_path: Path) -> None:
    service = {
        "service": {"name": "s"},
        "env": [{"name": "PORT"}, {"name": "ON"}],
        "flows": [{"name": "main", "process": [{"type": "set-payload", "value": "env"}]}],
    }
    case = {"name": "it", "expect": {"body": {"PORT": "8080", "ON": "true"}}}
    suite = {"flow": "main", "env": {"PORT": 8080, "ON": True}, "cases": [case]}
    (result,) = await run(tmp_path, service, suite)
    assert "passed" == result.status, told(result)


async def test_a_service_that_does_not_load_is_no_verdict(tmp_path: Path) -> None:
    service = yaml.safe_load(yaml.safe_dump(COUNTING))
    service["flows"][0]["process"].append({"type": "set-paylod"})
    (result,) = await run(tmp_path, service, {"flow": "main", "cases": [CASE]})
    assert "errored" == result.status
    assert "did you mean 'set-payload'" in result.error


async def test_a_flow_that_is_not_there_is_no_verdict(tmp_path: Path) -> None:
    (result,) = await run(tmp_path, COUNTING, {"flow": "mian", "cases": [CASE]})
    assert "errored" == result.status
    assert "did you mean 'main'" in result.error
