"""`flowrt invoke` with breakpoints, spies, mocks and envelopes, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.conftest import Flowrt

STEPS = """
service: {name: steps}
flows:
  - name: main
    process:
      - {type: set-variable, name: first, settings: {name: a, value: 1}}
      - {type: set-payload, name: second, value: body.n}
"""


def config(folder: Path) -> str:
    (folder / "steps.yaml").write_text(STEPS, encoding="utf-8")
    return str(folder / "steps.yaml")


def test_a_spy_or_breakpoint_prints_the_envelope(flowrt: Flowrt, tmp_path: Path) -> None:
    common = ("invoke", "--config", config(tmp_path), "--data", '{"n": 5}')
    told = json.loads(flowrt(*common, "--spies", "main.first, main.second").stdout)
    assert 5 == told["result"]["body"]
    assert ["main.first", "main.second"] == [spy["address"] for spy in told["spies"]]
    told = json.loads(flowrt(*common, "--break-at", "main.first").stdout)
    assert (True, {"a": 1}) == (told["reached"], told["message"]["variables"])
    assert "result" not in told


def test_a_run_with_mocks_alone_prints_as_ever(flowrt: Flowrt, tmp_path: Path) -> None:
    mocks = json.dumps({"main.second": {"default": {"body": "mocked"}}})
    done = flowrt("invoke", "--config", config(tmp_path), "--data", "{}", "--mocks", mocks)
    assert (0, '"mocked"\n') == (done.returncode, done.stdout)


def test_with_an_envelope_a_failing_flow_exits_0(flowrt: Flowrt, tmp_path: Path) -> None:
    done = flowrt("invoke", "--config", config(tmp_path), "--data", "{}", "--envelope")
    assert 0 == done.returncode
    assert "no such key: n" in json.loads(done.stdout)["error"]


def test_an_envelope_can_go_to_a_file(flowrt: Flowrt, tmp_path: Path) -> None:
    out = tmp_path / "envelope.json"
    common = ("invoke", "--config", config(tmp_path), "--envelope-out", str(out))
    done = flowrt(*common, "--data", '{"n": 5}')
    assert (0, "5\n") == (done.returncode, done.stdout)
    assert 5 == json.loads(out.read_text())["result"]["body"]


def test_a_debug_config_holds_all_of_it_and_flags_go_first(flowrt: Flowrt, tmp_path: Path) -> None:
    debug: dict[str, Any] = {
        "input": {"data": {"n": 1}, "vars": {"v": 2}},
        "spies": ["main.first"],
        "mocks": {"main.second": {"default": {"body": "mocked"}}},
    }
    file = tmp_path / "debug.json"
    file.write_text(json.dumps(debug))
    common = ("invoke", "--config", config(tmp_path), "--run-debug-config", str(file))
    told = json.loads(flowrt(*common).stdout)
    assert ("mocked", {"v": 2, "a": 1}) == (told["result"]["body"], told["result"]["variables"])
    told = json.loads(flowrt(*common, "--spies", "main.second", "--data", "{}").stdout)
    assert ["main.second"] == [spy["address"] for spy in told["spies"]]
    assert {"a": 1} == told["result"]["variables"]


def test_what_makes_no_sense_exits_2(flowrt: Flowrt, tmp_path: Path) -> None:
    path = config(tmp_path)
    unknown = flowrt("invoke", "--config", path, "--data", "{}", "--spies", "main.frist")
    assert 2 == unknown.returncode
    assert "did you mean 'main.first'" in unknown.stderr
    (tmp_path / "debug.yaml").write_text("spys: []\n")
    typo = flowrt("invoke", "--config", path, "--run-debug-config", str(tmp_path / "debug.yaml"))
    assert 2 == typo.returncode
    assert "debug.yaml:1:1" in typo.stderr
    assert "spies" in typo.stderr
    bad = flowrt("invoke", "--config", path, "--mocks", '{"main.first": {}}')
    assert (2, True) == (bad.returncode, "a mock needs cases, a default or both" in bad.stderr)


def test_raw_content_is_sent_as_it_is(flowrt: Flowrt, tmp_path: Path) -> None:
    text = "a,b\n1,2\n"
    common = ("invoke", "--config", config(tmp_path), "--spies", "main.first")
    done = flowrt(*common, "--content-type", "text/csv", "--data", text)
    record = json.loads(done.stdout)["spies"][0]["records"][0]
    assert {"contentType": "text/csv", "rawData": text} == record["input"]["body"]
