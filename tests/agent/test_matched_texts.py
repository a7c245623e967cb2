"""Texts of errors that flows match on: `vars.error.message.contains(…)` decides what they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.services import agent, load

UNREACHABLE = "http://127.0.0.1:9"


@pytest.mark.parametrize("flow", ["chat", "forget"])
@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"message": "hi"}, "no such key: thread"),
        ({"message": "hi", "thread": ""}, "{block} threadId"),
        ({"message": "hi", "thread": None}, "{block} threadId"),
        ({"message": "hi"}, "{block} threadId"),
    ],
)
async def test_a_thread_that_names_nobody_is_told_by_its_block(
    tmp_path: Path, flow: str, data: Any, text: str
) -> None:
    block = {"chat": "ai-agent memory", "forget": "clear-agent-memory"}[flow]
    assert await recovered(tmp_path, flow, data, text.format(block=block))


async def test_a_model_out_of_reach_is_told_with_its_address(tmp_path: Path) -> None:
    text = f'llm-anthropic stream: Post "{UNREACHABLE}/v1/messages"'
    data = {"message": "hi", "thread": "t"}
    assert await recovered(tmp_path, "chat", data, text)


async def recovered(folder: Path, name: str, data: Any, text: str) -> Any:
    """What the flow's own `error:` chain says of `text` in the error."""
    document = agent(UNREACHABLE, connection={"maxRetries": 0})
    for flow in document["flows"]:
        value = f"vars.error.message.contains({text!r})"
        flow["error"] = [{"type": "set-payload", "value": value}]
    async with load(folder, document) as service:
        result = await service.invoke(name, data)
    assert result.message is not None, result.error
    return result.message.body
