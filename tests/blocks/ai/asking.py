"""One AI block on a scripted model: what it made of a message, and what it asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from flowrt.clock import SystemClock
from flowrt.config.load import load_config
from flowrt.connectors.llm_scripted import ScriptedConnector
from flowrt.engine.build import build
from flowrt.llm.model import Request
from flowrt.observe.trace import Trace
from flowrt.service import Result, Service
from flowrt.storage.tiers import Storage
from tests.services import flows


class Asked(NamedTuple):
    """A result, the requests that led to it, and the records it left."""

    result: Result
    requests: list[Request]
    records: list[dict[str, Any]]

    @property
    def body(self) -> Any:
        assert self.result.message is not None, self.result.error
        return self.result.message.body

    @property
    def vars(self) -> Any:
        assert self.result.message is not None, self.result.error
        return self.result.message.vars

    @property
    def error(self) -> str:
        assert self.result.error is not None
        return str(self.result.error)

    def results(self, request: int = -1) -> list[dict[str, Any]]:
        """The tool results at the end of a request."""
        content = self.requests[request].messages[-1]["content"]
        return [block for block in content if block["type"] == "tool_result"]


def document(chain: list[dict[str, Any]], *replies: dict[str, Any]) -> dict[str, Any]:
    """A service with the flow `main` and the scripted model `model`."""
    return flows(main=chain) | {
        "connectors": [
            {"name": "model", "type": "llm-scripted", "settings": {"replies": list(replies)}}
        ]
    }


def anthropic(base_url: str, **settings: Any) -> dict[str, Any]:
    """A connector `model` that speaks to the fake Messages API."""
    settings = {"apiKey": "k", "baseURL": base_url, "maxRetries": 0, **settings}
    return {"name": "model", "type": "llm-anthropic", "settings": settings}


async def ask(
    folder: Path,
    chain: list[dict[str, Any]],
    *replies: dict[str, Any],
    body: Any = None,
    variables: dict[str, Any] | None = None,
) -> Asked:
    """Send one message through the chain, with these replies of the model."""
    text = yaml.safe_dump(document(chain, *replies), sort_keys=False)
    (folder / "service.yaml").write_text(text, encoding="utf-8")
    config = load_config(folder / "service.yaml", environ={})
    built = build(config)
    async with Service(config, built, Storage.from_urls("test", "memory:", None)) as service:
        asked = await send(service, body, variables)
    model = built.connectors["model"]
    assert isinstance(model, ScriptedConnector)
    return asked._replace(requests=model.script.requests)


async def send(service: Service, body: Any, variables: dict[str, Any] | None = None) -> Asked:
    """Send one message through `main` of a service that has started."""
    lines: list[str] = []
    trace = Trace(lines.append, SystemClock())
    result = await service.invoke("main", body, variables, trace=trace)
    return Asked(result, [], [json.loads(line) for line in lines])


def calls(*names: str, **arguments: Any) -> dict[str, Any]:
    """A reply that calls tools, all with these arguments."""
    return {"toolCalls": [{"name": name, "input": arguments} for name in names]}


def put(name: str, value: str) -> dict[str, Any]:
    """A block that sets a variable."""
    return {"type": "set-variable", "settings": {"name": name, "value": value}}


def say(value: str) -> dict[str, Any]:
    """A block that makes the body a text."""
    return {"type": "set-payload", "value": json.dumps(value)}
