"""Every YAML example of the README, the docs and the blocks' docstrings loads; some are run."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from flowrt.cli.main import app
from flowrt.engine import registry
from flowrt.service import Service
from flowrt.testing.suite.report import suite_text
from flowrt.testing.suite.runner import SuiteOptions, run_suites
from tests.services import flows, load

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SUITE_SCHEMA = json.loads((ROOT / "schemas/suite.schema.json").read_text(encoding="utf-8"))
TEAM = {"name": "team", "type": "slack", "settings": {"botToken": "x", "signingSecret": "s"}}
FENCE = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def services() -> list[Any]:
    """The examples that are whole services, with the page and place they stand at."""
    found = []
    for page in PAGES:
        for number, match in enumerate(FENCE.finditer(page.read_text(encoding="utf-8"))):
            if match[1].startswith("service:"):
                found.append(pytest.param(match[1], id=f"{page.name}-{number}"))
    return found


@pytest.mark.parametrize("text", services())
def test_a_service_in_the_docs_loads(text: str, tmp_path: Path) -> None:
    (tmp_path / "service.yaml").write_text(text, encoding="utf-8")
    environ = {"ANTHROPIC_API_KEY": "k"}
    assert Service.load(tmp_path / "service.yaml", storage="memory:", environ=environ).flows


def suites() -> list[Any]:
    """The examples that are suites, each with the service that stands before it on its page."""
    found = []
    for page in PAGES:
        service = ""
        for number, match in enumerate(FENCE.finditer(page.read_text(encoding="utf-8"))):
            if match[1].startswith("service:"):
                service = match[1]
            elif match[1].startswith("flow:"):
                found.append(pytest.param(service, match[1], id=f"{page.name}-{number}"))
    return found


@pytest.mark.parametrize(("service", "suite"), suites())
async def test_a_suite_in_the_docs_passes(service: str, suite: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(service, encoding="utf-8")
    (tmp_path / "x_test.yaml").write_text(suite, encoding="utf-8")
    (result,) = await run_suites([str(tmp_path)], SuiteOptions())
    assert "" == result.error
    assert {"passed", "skipped"} >= {case.status for case in result.cases}, suite_text(
        result, verbose=True
    )
    jsonschema.validate(yaml.load(suite, yaml.CSafeLoader), SUITE_SCHEMA)


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [page.name for page in PAGES[1:] if f"docs/{page.name}" not in readme]
    assert [] == missing


async def test_the_file_to_paste_remembers(tmp_path: Path) -> None:
    text = FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    (tmp_path / "chat.yaml").write_text(text, encoding="utf-8")
    async with Service.load(tmp_path / "chat.yaml", storage="memory:", environ={}) as service:
        answers = []
        for said in ("My name is Sam.", "What is my name?"):
            result = await service.invoke("chat", {"threadId": "t1", "message": said})
            assert result.message is not None, result.error
            answers.append(result.message.body)
    assert ["Hello.", "Your name is Sam."] == answers


async def test_the_flows_of_the_page_about_messages_do_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/messages.md").read_text(encoding="utf-8")
    lines = [{"sku": "x", "qty": 2, "price": 10.0}, {"sku": "y", "qty": 1, "price": 5.5}]
    calls = [("order", {"lines": lines}), ("signup", {"name": "Sam"})]
    answers = []
    for text, (flow, body) in zip(FENCE.findall(page), calls, strict=True):
        (tmp_path / "service.yaml").write_text(text, encoding="utf-8")
        service = Service.load(tmp_path / "service.yaml", storage="memory:", environ={})
        await service.start(sources=True)
        result = await service.invoke(flow, body)
        await service.stop()
        assert result.message is not None, result.error
        answers.append(result.message.body)
    assert [{"accepted": 2}, {"name": "Sam", "plan": "free"}] == answers
    told = capsys.readouterr().err
    assert "2 lines, complete by size" in told
    assert "welcome Sam" in told


@pytest.mark.parametrize("name", registry.blocks.own_names())
def test_the_example_of_a_block_loads(name: str, tmp_path: Path) -> None:
    (example,) = FENCE.findall(inspect.cleandoc(registry.blocks.get(name).__doc__) + "\n")
    document = flows(main=yaml.safe_load(example), **{"load-profile": []})
    (tmp_path / "welcome.md").write_text("Hello, {{ body.name }}.", encoding="utf-8")
    document["resources"] = {"templates": [{"resource": "welcome.md", "as": "welcome"}]}
    document["connectors"] = [
        {"name": "claude", "type": "llm-scripted", "settings": {"replies": [{"text": "x"}]}},
        {"name": "vectors", "type": "embed-local"},
        {"name": "shop", "type": "http-client", "settings": {"baseURL": "https://example.com"}},
        TEAM,
        {"name": "reports", "type": "file", "settings": {"root": "."}},
        {"name": "vault", "type": "crypto", "settings": {"key": "k" * 16, "keyEncoding": "utf8"}},
        {
            "name": "orders",
            "type": "database",
            "settings": {"driver": "sqlite", "dsn": ":memory:"},
        },
    ]
    assert load(tmp_path, document).flows


@pytest.mark.parametrize("name", registry.connectors.own_names())
def test_the_example_of_a_connector_loads(name: str, tmp_path: Path) -> None:
    (example,) = FENCE.findall(inspect.cleandoc(registry.connectors.get(name).__doc__) + "\n")
    keys = re.findall(r"\$\{(\w+)\}", example)
    document = flows(main=[]) | yaml.safe_load(example) | {"env": [{"name": key} for key in keys]}
    assert load(tmp_path, document, environ=dict.fromkeys(keys, "k")).flows


@pytest.mark.parametrize("name", registry.sources.own_names())
def test_the_example_of_a_source_loads(name: str, tmp_path: Path) -> None:
    (example,) = FENCE.findall(inspect.cleandoc(registry.sources.get(name).__doc__) + "\n")
    document = flows(main=[])
    if name == "slack":  # which no default can connect
        document["connectors"] = [TEAM]
    document["flows"][0] |= yaml.safe_load(example)
    assert load(tmp_path, document).flows


def test_every_command_is_documented_and_has_a_help_text() -> None:
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert command.callback is not None
        assert (command.callback.__doc__ or "").strip()
        assert f"`flowrt {command.name or command.callback.__name__}" in page
