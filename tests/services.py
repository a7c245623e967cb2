"""Services for tests: a config given as data, written out and loaded like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from flowrt.service import Service

ECHO_TOOL = {
    "name": "echo",
    "description": "Gives its arguments back.",
    "process": [{"type": "set-payload", "value": "body"}],
}


def load(
    folder: Path, document: dict[str, Any], storage: str = "memory:", **options: Any
) -> Service:
    """The service that `document` describes."""
    path = folder / "service.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return Service.load(path, storage=storage, environ=options.pop("environ", {}), **options)


def flows(**chains: list[dict[str, Any]]) -> dict[str, Any]:
    """A document with these flows."""
    return {
        "service": {"name": "test"},
        "flows": [{"name": name, "process": chain} for name, chain in chains.items()],
    }


def agent(
    base_url: str, *, connection: dict[str, Any] | None = None, **settings: Any
) -> dict[str, Any]:
    """A document with a flow `chat`: one agent on the Messages API at `base_url`.

    The agent answers in text and takes `body.message`; with memory on `body.thread`.
    """
    block = {
        "type": "ai-agent",
        "name": "assistant",
        "connector": "claude",
        "prompt": "Help.",
        "answer": "text",
        "input": "body.message",
        "memoryThreadId": "body.thread",
        "tools": [ECHO_TOOL],
    }
    block |= settings
    block = {key: value for key, value in block.items() if value is not None}
    document = flows(
        chat=[block], forget=[{"type": "clear-agent-memory", "threadId": "body.thread"}]
    )
    document["connectors"] = [
        {
            "name": "claude",
            "type": "llm-anthropic",
            "settings": {"apiKey": "k", "baseURL": base_url, "maxRetries": 2, **(connection or {})},
        }
    ]
    return document


def say(text: str, thread: str = "t") -> dict[str, Any]:
    """The body of one message."""
    return {"thread": thread, "message": text}


def texts(message: dict[str, Any]) -> list[str]:
    """The texts of a message of a request."""
    return [block["text"] for block in message["content"] if block["type"] == "text"]
