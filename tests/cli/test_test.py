"""`flowrt test` as a user calls it: exit codes, what is printed, reports."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.cli.conftest import Flowrt, command, environment
from tests.services import agent, flows
from tests.testing.suite.suites import COUNTING, write

GOOD = {"name": "good", "input": {"data": {"n": 1}}, "expect": {"that": ["body.n == 1"]}}
BAD = {"name": "bad 'one'", "input": {"data": {"n": 1}}, "expect": {"that": ["body.n == 2"]}}
BROKEN = {"name": "broken", "spies": {"main.nowhere": {}}}
SKIPPED = {"name": "skipped", "skip": "not today"}


def suite(*cases: dict[str, Any], **top: Any) -> dict[str, Any]:
    return {"flow": "main", **top, "cases": list(cases)}


@pytest.mark.parametrize(
    ("cases", "code", "last"),
    [
        ([GOOD, SKIPPED], 0, "1 passed, 1 skipped"),
        ([GOOD, BAD], 1, "1 passed, 1 failed"),
        ([GOOD, BAD, BROKEN], 2, "1 passed, 1 failed, 1 errored"),
    ],
)
def test_the_exit_code_says_whether_all_passed(
    cases: Any, code: int, last: str, flowrt: Flowrt, tmp_path: Path
) -> None:
    write(tmp_path, COUNTING, suite(*cases))
    done = flowrt("test", ".")
    assert code == done.returncode
    assert done.stdout.splitlines()[-1].startswith(f"{last} in ")


def test_a_file_that_is_no_suite_does_not_keep_the_others_from_running(
    flowrt: Flowrt, tmp_path: Path
) -> None:
    write(tmp_path, COUNTING, suite(GOOD))
    (tmp_path / "a_test.yaml").write_text("flow: main\ncase: []\n")
    done = flowrt("test", ".")
    assert 2 == done.returncode
    assert "ERROR a_test.yaml:2:1 case: unknown key 'case'" in done.stdout
    assert "1 passed, 1 errored" in done.stdout


def test_a_failure_names_case_place_wanted_and_got_and_how_to_run_it_again(
    flowrt: Flowrt, tmp_path: Path
) -> None:
    mocks = {"main.step": {"cases": [{"when": "body.n > 0", "body": {"n": "it's"}}]}}
    bad = {**BAD, "expect": {"body": {"n": 1}}, "env": {"A": "a b"}, "mocks": mocks}
    write(tmp_path, COUNTING, suite(bad))
    told = flowrt("test", "s_test.yaml").stdout
    assert "FAIL  bad 'one'" in told
    assert 'expect.body.n\n          wanted  1\n          got     "it\'s"' in told
    again = next(line for line in told.splitlines() if "again: " in line).partition("again: ")[2]
    variable, flowrt_, *arguments = shlex.split(again)
    assert ("A=a b", "flowrt") == (variable, flowrt_)
    assert {"n": "it's"} == json.loads(flowrt(*arguments).stdout)["body"]


def test_a_conversation_is_run_again_by_its_case(flowrt: Flowrt, tmp_path: Path) -> None:
    document = agent("https://llm.invalid")
    case = {"name": "chat", "turns": [{"input": {"data": {"thread": "t", "message": "Hi."}}}]}
    models = {"claude": [{"text": "Hello."}]}
    bad = {**case, "turns": [{**case["turns"][0], "expect": {"body": "x"}}]}
    write(tmp_path, document, {"flow": "chat", "models": models, "cases": [bad]})
    told = flowrt("test", "s_test.yaml").stdout
    assert "turn 1: expect.body" in told
    assert "again: flowrt test s_test.yaml --case chat -v" in told


def test_v_shows_every_case(flowrt: Flowrt, tmp_path: Path) -> None:
    write(tmp_path, COUNTING, suite(GOOD, SKIPPED))
    told = flowrt("test", "s_test.yaml", "-v").stdout
    assert "  ok    good " in told
    assert "  skip  skipped (not today)" in told


def test_fail_fast_leaves_the_rest_unrun(flowrt: Flowrt, tmp_path: Path) -> None:
    write(tmp_path, COUNTING, suite(BAD, GOOD, {**GOOD, "name": "third"}))
    done = flowrt("test", "s_test.yaml", "--fail-fast", "--parallel", "1")
    assert "1 failed, 2 not run" in done.stdout


def test_one_case_can_be_chosen(flowrt: Flowrt, tmp_path: Path) -> None:
    write(tmp_path, COUNTING, suite(GOOD, BAD))
    assert 0 == flowrt("test", ".", "--case", "good").returncode
    unknown = flowrt("test", ".", "--case", "goood")
    assert (2, "no case is called 'goood'\n") == (unknown.returncode, unknown.stderr)


@pytest.mark.parametrize("isolated", [[], ["--isolated"]])
def test_reports_are_written_for_machines(
    isolated: list[str], flowrt: Flowrt, tmp_path: Path
) -> None:
    write(tmp_path, COUNTING, suite(GOOD, BAD, BROKEN, SKIPPED))
    done = flowrt("test", ".", "--junit", "j.xml", "--report-json", "r.json", *isolated)
    assert 2 == done.returncode
    report = json.loads((tmp_path / "r.json").read_text())
    counts = {"cases": 4, "passed": 1, "failed": 1, "errored": 1, "skipped": 1, "notRun": 0}
    assert counts.items() <= report["totals"].items()
    (told,) = report["suites"]
    assert ("s_test.yaml", "s.yaml", "main") == (told["path"], told["config"], told["flow"])
    good, bad, broken, _ = told["cases"]
    assert {"n": 1, "text": "n is 1"} == good["outcome"]["result"]["body"]
    assert "expect.that[0]" == bad["failures"][0]["summary"]
    assert bad["reproduce"].startswith("flowrt invoke --config s.yaml --flow main")
    assert "there is no block 'main.nowhere'" in broken["error"]
    (xml,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert ("4", "1", "1", "1") == tuple(
        xml.get(name) for name in ("tests", "failures", "errors", "skipped")
    )


def test_a_report_on_standard_output_stands_alone(flowrt: Flowrt, tmp_path: Path) -> None:
    write(tmp_path, COUNTING, suite(GOOD))
    assert 1 == json.loads(flowrt("test", ".", "--report-json", "-").stdout)["totals"]["passed"]


def test_an_env_file_goes_before_the_shell(flowrt: Flowrt, tmp_path: Path) -> None:
    service = flows(main=[{"type": "set-payload", "value": "env.A"}]) | {"env": [{"name": "A"}]}
    write(tmp_path, service, suite({"name": "it", "expect": {"body": "file"}}))
    (tmp_path / "test.env").write_text("A=file\n")
    assert 0 == flowrt("test", ".", "--env-file", "test.env", A="shell").returncode


def test_traces_of_each_case_go_to_a_folder(flowrt: Flowrt, tmp_path: Path) -> None:
    write(tmp_path, COUNTING, suite(GOOD))
    flowrt("test", ".", "--traces-dir", "traces")
    (trace,) = (tmp_path / "traces").iterdir()
    assert "flow.started" == json.loads(trace.read_text().splitlines()[0])["kind"]


def test_a_suite_may_count_on_a_provider_that_is_not_there(flowrt: Flowrt, tmp_path: Path) -> None:
    """The dialect's own suites point the SDK at a closed port and expect this text."""
    document = yaml.safe_load(yaml.safe_dump(agent("")))
    document["connectors"][0]["settings"] = {"apiKey": "k", "maxRetries": 0}
    expected = 'llm-anthropic stream: Post "http://127.0.0.1:9/v1/messages"'
    case = {
        "name": "offline",
        "input": {"data": {"thread": "t", "message": "Hi."}},
        "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"},
        "expect": {"error": expected},
    }
    write(tmp_path, document, {"flow": "chat", "cases": [case]})
    done = flowrt("test", ".")
    assert 0 == done.returncode, done.stdout


def test_help_imports_nothing_heavy() -> None:
    import subprocess

    done = subprocess.run(
        command("test", "--help"), env=environment(), capture_output=True, text=True, check=True
    )
    assert "*_test.yaml files" in done.stdout
