"""Every YAML example of the README, the docs and the blocks' docstrings loads; some are run."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from flowrt.cli.main import app
from flowrt.engine import registry
from flowrt.service import Service
from tests.services import flows, load

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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
    assert Service.load(tmp_path / "service.yaml", storage="memory:", environ={}).flows


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


@pytest.mark.parametrize("name", registry.blocks.own_names())
def test_the_example_of_a_block_loads(name: str, tmp_path: Path) -> None:
    (example,) = FENCE.findall(inspect.cleandoc(registry.blocks.get(name).__doc__) + "\n")
    document = flows(main=yaml.safe_load(example), **{"load-profile": []})
    (tmp_path / "welcome.md").write_text("Hello, {{ body.name }}.", encoding="utf-8")
    document["resources"] = {"templates": [{"resource": "welcome.md", "as": "welcome"}]}
    document["connectors"] = [
        {"name": "claude", "type": "llm-scripted", "settings": {"replies": [{"text": "x"}]}}
    ]
    assert load(tmp_path, document).flows


@pytest.mark.parametrize("name", registry.connectors.own_names())
def test_the_example_of_a_connector_loads(name: str, tmp_path: Path) -> None:
    (example,) = FENCE.findall(inspect.cleandoc(registry.connectors.get(name).__doc__) + "\n")
    document = flows(main=[]) | yaml.safe_load(example) | {"env": [{"name": "ANTHROPIC_API_KEY"}]}
    assert load(tmp_path, document, environ={"ANTHROPIC_API_KEY": "k"}).flows


def test_every_command_is_documented_and_has_a_help_text() -> None:
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert command.callback is not None
        assert (command.callback.__doc__ or "").strip()
        assert f"`flowrt {command.name or command.callback.__name__}" in page
