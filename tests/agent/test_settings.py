"""Settings of the agent that cannot work are load errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
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
        ({"authorizeId": "body.x"}, "not supported by this version"),
        ({"attachments": "[]"}, "not supported by this version"),
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
    with pytest.raises(
        ConfigError, match=r"service\.yaml:\d+:\d+ flows\.chat\.process\[0\]"
    ) as found:
        load(tmp_path, agent("http://127.0.0.1:9", **settings))
    assert text in str(found.value)
