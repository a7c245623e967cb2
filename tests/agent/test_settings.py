"""Settings of the agent that cannot work are load errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.connectors.llm_scripted import ScriptedConnector
from flowrt.engine import registry
from flowrt.errors import ConfigError
from flowrt.llm.connector import ModelConnector
from tests.services import agent, load


def tool(name: str, *chain: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": name, "process": list(chain)}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"tools": [tool("crm.lookup")]}, "crm.lookup"),
        ({"tools": [tool("look up")]}, "look up"),
        ({"tools": [tool("x" * 200)]}, "should match pattern"),
        ({"tools": [tool("a"), tool("a")]}, "two tools are called 'a'"),
        ({"contextMaxTokens": 0}, "contextMaxTokens"),
        ({"contextMaxTokens": -1}, "contextMaxTokens"),
        ({"contextMaxTokens": "4k"}, "contextMaxTokens"),
        ({"contextMaxTokens": 1.5}, "contextMaxTokens"),
        ({"memoryMaxTokens": 8000}, "contextMaxTokens"),
        ({"agentId": " "}, "must not be blank"),
        ({"agentId": "x", "memoryThreadId": None}, "agentId needs memoryThreadId"),
        ({"history": "record"}, "history: record needs agentId"),
        ({"history": "keep"}, "history"),
        ({"userMemory": True, "userId": "body.user"}, "userMemory needs agentId"),
        ({"forwardContext": "{}"}, "forwardContext needs agentId"),
        ({"nameThread": {"process": []}}, "nameThread needs agentId"),
        ({"resumeInterrupted": True}, "resumeInterrupted needs agentId"),
        ({"agentId": "x", "userMemory": True}, "userMemory needs userId"),
        (
            {"agentId": "x", "userMemory": True, "userId": "body.u", "tools": [tool("forget")]},
            "'forget' is reserved",
        ),
        ({"emit": ["done"]}, "emit needs events"),
        ({"stream": True}, "stream needs events"),
        ({"events": {"process": []}, "emit": ["nothing"]}, "unknown event type 'nothing'"),
        ({"stopWhen": "true", "memoryThreadId": None}, "stopWhen needs memoryThreadId"),
        ({"prompt": "  "}, "must not be blank"),
        ({"connector": "cloude"}, "did you mean 'claude'"),
        ({"maxIteration": 3}, "did you mean 'maxIterations'"),
        ({"memoryThreadId": "body.("}, "does not compile"),
    ],
)
def test_a_setting_that_cannot_work_is_a_load_error(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    """FB-20 and FB-29: the names that the API refuses, and budgets without a meaning."""
    with pytest.raises(
        ConfigError, match=r"service\.yaml:\d+:\d+ flows\.chat\.process\[0\]"
    ) as found:
        load(tmp_path, agent("http://127.0.0.1:9", **settings))
    assert text in str(found.value)


GATED = tool("refund") | {"authorize": "true"}
ANSWERS = {"authorizeId": "body.id", "authorizeAllow": "body.allow"}
EVENTS = {"events": {"process": []}}


@pytest.mark.parametrize(
    ("settings", "place", "text"),
    [
        ({"authorizeId": "body.id"}, "authorizeId", "needs authorizeAllow"),
        ({"authorizeAllow": "body.ok"}, "authorizeAllow", "needs authorizeId"),
        (ANSWERS | {"memoryThreadId": None}, "authorizeId", "needs memoryThreadId"),
        ({"authorizeTimeout": "1m"}, "authorizeTimeout", "needs authorizeId"),
        (ANSWERS | {"authorizeTimeout": "0s"}, "authorizeTimeout", "more than 0"),
        (ANSWERS | {"authorizeTimeout": "1h"}, "authorizeTimeout", "less than 15m"),
        (ANSWERS | {"authorizeTimeout": "soon"}, "authorizeTimeout", "expected a duration"),
        (EVENTS | {"tools": [GATED]}, "tools[0].authorize", "needs authorizeId"),
        (ANSWERS | {"tools": [GATED]}, "tools[0].authorize", "add events"),
        (
            ANSWERS | EVENTS | {"tools": [tool("look"), GATED], "emit": ["done"]},
            "tools[1].authorize",
            "add tool_authorization to emit",
        ),
        (
            {"tools": [tool("refund") | {"authorize": "inputs.amount > 1"}]},
            "tools[0].authorize",
            "unknown name 'inputs'",
        ),
        ({"attachments": "[]", "input": None}, "attachments", "attachments needs input"),
        ({"keepAttachments": True}, "keepAttachments", "needs attachments"),
        ({"responseMedia": ""}, "responseMedia", ""),
    ],
)
def test_gates_and_files_that_cannot_work_are_reported_where_they_stand(
    tmp_path: Path, settings: dict[str, Any], place: str, text: str
) -> None:
    with pytest.raises(ConfigError) as found:
        load(tmp_path, agent("http://127.0.0.1:9", **settings))
    [fault] = found.value.faults
    assert f"flows.chat.process[0].{place}" == fault.path
    assert fault.position is not None
    assert text in str(fault)


def test_attachments_on_a_connector_that_takes_text_alone_are_a_load_error(
    tmp_path: Path,
) -> None:
    class Reader(ScriptedConnector):
        """A connector of somebody else's, which says nothing of files."""

        media = ModelConnector.media

    registry.connectors.add("llm-reader", Reader)
    document = agent("http://127.0.0.1:9", attachments="body.files")
    document["connectors"] = [
        {"name": "claude", "type": "llm-reader", "settings": {"replies": [{"text": "x"}]}}
    ]
    with pytest.raises(ConfigError, match=r"attachments: .*'claude' takes text alone"):
        load(tmp_path, document)
