"""The scripted connector: a model from a list in YAML or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.service import Service
from tests.services import agent, load, say


def scripted(**settings: Any) -> dict[str, Any]:
    document = agent("")
    document["connectors"] = [{"name": "claude", "type": "llm-scripted", "settings": settings}]
    return document


async def answers(service: Service, *said: str) -> list[Any]:
    async with service:
        results = [await service.invoke("chat", say(text)) for text in said]
    return [result.message.body if result.message else str(result.error) for result in results]


async def test_entries_answer_in_order_and_conditions_first(tmp_path: Path) -> None:
    replies = [
        {"text": "one"},
        {"when": 'request.lastUserText == "name?"', "text": "Sam"},
        {"text": "two"},
    ]
    found = await answers(load(tmp_path, scripted(replies=replies)), "a", "name?", "b", "name?")
    assert ["one", "Sam", "two", "Sam"] == found


async def test_a_request_that_nothing_answers_is_shown(tmp_path: Path) -> None:
    (found,) = await answers(load(tmp_path, scripted(replies=[])), "unexpected words")
    assert "has no answer" in found
    assert "unexpected words" in found


async def test_the_list_may_be_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "script.yaml").write_text("replies:\n  - text: from a file\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert ["from a file"] == await answers(load(tmp_path, scripted(file="script.yaml")), "hi")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "give either replies or file"),
        ({"replies": [{"txt": "x"}]}, "replies[0.txt]"),
        ({"replies": [{"delay": 1}]}, "an entry needs text"),
        ({"replies": [{"when": "requst.text", "text": "x"}]}, "did you mean 'request'"),
        ({"file": "nowhere.yaml"}, "cannot read nowhere.yaml"),
    ],
)
def test_a_script_that_cannot_work_is_a_load_error(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError) as found:
        load(tmp_path, scripted(**settings))
    assert text in str(found.value)


@pytest.mark.parametrize(
    "when",
    [
        "request.lastUserText == 'hi'",
        "request . text.contains('hi') && request.tokens > 10",
        "request['lastUserText'] == 'hi'",
        "[request].exists(r, r.text.contains('hi'))",
        "request.tools.exists(t, t.name == 'echo')",
        "request.system.contains('Help.') && request.messages.size() == 1",
    ],
)
async def test_a_condition_sees_whatever_it_asks_for(tmp_path: Path, when: str) -> None:
    replies = [{"when": when, "text": "yes"}, {"text": "no"}]
    assert ["yes"] == await answers(load(tmp_path, scripted(replies=replies)), "hi")
