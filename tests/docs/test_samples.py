"""Every sample has a suite that passes offline, and stands in the table of samples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flowrt.config.nodes import plain
from flowrt.config.yaml import load_yaml
from flowrt.testing.suite.report import suite_text
from flowrt.testing.suite.runner import SuiteOptions, run_suites

ROOT = Path(__file__).parent.parent.parent
SAMPLES = ROOT / "samples"
SUITES = sorted(SAMPLES.rglob("*_test.yaml"))
SERVICES = sorted(set(SAMPLES.rglob("*.yaml")) - set(SUITES))


def name(path: Path) -> str:
    return path.relative_to(SAMPLES).as_posix()


def test_every_sample_has_a_suite() -> None:
    beside = {name(path).replace("_test.yaml", ".yaml") for path in SUITES}
    assert {name(path) for path in SERVICES} == beside


def test_every_sample_stands_in_the_table_once() -> None:
    page = (SAMPLES / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[.*?\]\((.*?)\) \|", page, re.MULTILINE)
    assert sorted(map(name, SERVICES)) == sorted(listed)


@pytest.mark.parametrize("path", SUITES, ids=name)
async def test_the_suite_of_a_sample_passes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (result,) = await run_suites([str(path)], SuiteOptions(parallel=4))
    assert "" == result.error
    assert {"passed"} == {case.status for case in result.cases}, suite_text(result, verbose=True)


@pytest.mark.parametrize("path", SERVICES, ids=name)
def test_the_command_on_top_of_a_sample_names_what_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    head = text.partition("\nservice:")[0]
    for config in re.findall(r"--config (\S+)", head):
        assert (ROOT / config).exists()
    flows = {flow["name"] for flow in plain(load_yaml(text.encode(), path.name))["flows"]}
    assert set(re.findall(r"--flow (\S+)", head)) <= flows
    if "flowrt chat" in head:  # which sends these two
        assert {"body.threadId", "body.message"} <= set(re.findall(r"body\.\w+", text))
