"""What the benchmarks share: one turn's work, medians, and a JSON line that names the machine."""

from __future__ import annotations

import json
import os
import platform
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from flowrt.service import Service

USER, RESULT, ANSWER = "u" * 200, "r" * 500, "a" * 200
"""One turn: 200 characters of user text, a tool call, 500 of result, 200 of answer."""


def machine() -> str:
    """Where the figures come from."""
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{system}, Python {platform.python_version()}"


def report(bench: str, **figures: Any) -> None:
    """Print one line of results."""
    print(json.dumps({"bench": bench, **figures, "machine": machine()}), flush=True)


def median(values: list[float]) -> float:
    """The median, rounded to four places."""
    return round(statistics.median(values), 4)


def document(*, delay: float = 0.0, **settings: Any) -> dict[str, Any]:
    """A service whose flow `chat` does one turn: a tool call, then the answer."""
    replies = [
        {"toolCalls": [{"name": "look", "input": {"q": "x"}}], "delay": delay},
        {"text": ANSWER, "delay": delay},
    ]
    tool = {
        "name": "look",
        "description": "Looks something up.",
        "process": [{"type": "set-payload", "value": f"'{RESULT}'"}],
    }
    agent = {
        "type": "ai-agent",
        "name": "assistant",
        "connector": "model",
        "prompt": "Help.",
        "answer": "text",
        "input": "body.message",
        "memoryThreadId": "body.thread",
        "contextMaxTokens": 8000,
        "tools": [tool],
    }
    return {
        "service": {"name": "bench"},
        "connectors": [
            {
                "name": "model",
                "type": "llm-scripted",
                "settings": {"replies": replies, "repeat": True},
            }
        ],
        "flows": [{"name": "chat", "process": [agent | settings]}],
    }


@contextmanager
def service(content: dict[str, Any], storage: str | None = None) -> Iterator[Service]:
    """The service, on a SQLite file of its own unless another store is named."""
    os.environ.setdefault("LOG_LEVEL", "error")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.yaml"
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        yield Service.load(path, storage=storage or f"sqlite:{folder}/state.db")


def message(thread: str = "t") -> dict[str, str]:
    """The body of one turn."""
    return {"thread": thread, "message": USER}
