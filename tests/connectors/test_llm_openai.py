"""The connectors of Chat Completions servers: what their settings become, and what they refuse."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from flowrt.connectors.completions import CompletionsConnector
from flowrt.connectors.llm_gemini import GeminiConnector
from flowrt.connectors.llm_openai import OpenAIConnector
from flowrt.connectors.llm_openrouter import OpenRouterConnector
from flowrt.engine import registry
from flowrt.errors import ConfigError, ConnectorError
from flowrt.llm.connector import EmbeddingConnector
from flowrt.llm.model import Request
from flowrt.testing import FakeCompletionsAPI
from tests.services import flows, load

OPENROUTER = ("reasoning", "usage", "cache_control")


def connector(kind: str, api: FakeCompletionsAPI | None = None, **settings: Any) -> Any:
    """A connector as a file would make it."""
    made = registry.connectors.get(kind)
    if api is not None:
        settings["baseURL"] = api.base_url
    return made("model", made.Settings.model_validate({"apiKey": "k", **settings}))


async def sent(api: FakeCompletionsAPI, kind: str, **settings: Any) -> dict[str, Any]:
    """The body that the connector sends."""
    api.add("fine")
    used = connector(kind, api, **settings)
    try:
        say = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
        await used.chat_model.complete(Request(messages=[say]))
    finally:
        await used.stop()
    body: dict[str, Any] = api.bodies[-1]
    assert [{"role": "user", "content": "hi"}] == body.pop("messages")
    return body


async def test_openai_asks_for_what_its_settings_say() -> None:
    with FakeCompletionsAPI() as api:
        assert {"model": "gpt-5.4"} == await sent(api, "llm-openai")
        assert {"model": "qwen3", "max_tokens": 50, "reasoning_effort": "low"} == await sent(
            api, "llm-openai", model="qwen3", maxTokens=50, reasoning="low"
        )


async def test_openrouter_asks_for_the_cost_and_says_who_asks() -> None:
    with FakeCompletionsAPI(extras=OPENROUTER) as api:
        plain = await sent(api, "llm-openrouter")
        settings = {"appName": "Desk", "siteURL": "https://example.org", "reasoning": "high"}
        named = await sent(api, "llm-openrouter", **settings)

        costs = {"model": "anthropic/claude-sonnet-4.5", "usage": {"include": True}}
        assert costs == plain
        assert {**costs, "reasoning": {"effort": "high"}} == named
        headers = api.requests[1].headers
        assert ("Desk", "https://example.org") == (headers["x-title"], headers["http-referer"])
        assert "x-title" not in api.requests[0].headers


@pytest.mark.parametrize(
    ("settings", "budget"),
    [
        ({"thinking": "off"}, 0),
        ({"thinking": "dynamic"}, -1),
        ({"thinking": "budgeted", "thinkingBudget": 512}, 512),
    ],
)
async def test_gemini_is_told_how_much_it_may_think(settings: dict[str, Any], budget: int) -> None:
    with FakeCompletionsAPI(extras=["extra_body"]) as api:
        body = await sent(api, "llm-gemini", **settings)

    extra = {"google": {"thinking_config": {"thinking_budget": budget}}}
    assert {"model": "gemini-3.5-flash", "extra_body": extra} == body


async def test_gemini_is_told_nothing_where_the_file_says_nothing() -> None:
    with FakeCompletionsAPI() as api:
        assert {"model": "gemini-3.5-flash"} == await sent(api, "llm-gemini")


def test_each_connector_knows_where_its_provider_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    made: list[CompletionsConnector[Any]] = [
        connector(kind) for kind in ("llm-openai", "llm-openrouter", "llm-gemini")
    ]

    assert [
        ("OPENAI", "https://api.openai.com/v1"),
        ("OPENROUTER", "https://openrouter.ai/api/v1"),
        ("GOOGLE", "https://generativelanguage.googleapis.com/v1beta/openai"),
    ] == [(one.chat_model.provider, one.api) for one in made]


def test_a_server_on_this_machine_is_local_and_a_provider_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    assert connector("llm-openai", baseURL="http://localhost:11434/v1").local
    assert not connector("llm-openai").local
    assert not connector("llm-gemini").local


async def test_openais_address_comes_from_the_environment_when_none_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeCompletionsAPI(["fine"]) as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        used = connector("llm-openai")
        say = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
        reply = await used.chat_model.complete(Request(messages=[say]))
        await used.stop()

    assert "fine" == reply.text


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("llm-openai", "text-embedding-3-small"),
        ("llm-gemini", "gemini-embedding-001"),
        ("llm-openrouter", "openai/text-embedding-3-small"),
    ],
)
async def test_every_one_of_them_embeds(kind: str, model: str) -> None:
    with FakeCompletionsAPI() as api:
        used, other = connector(kind, api), connector(kind, api, embeddingModel="mine")
        assert isinstance(used, EmbeddingConnector)
        assert used.embedding_model is used.embedding_model
        found = [await one.embedding_model.embed(["a"]) for one in (used, other)]
        await used.stop()
        await other.stop()

    assert [model, "mine"] == [vectors.model for vectors in found]
    assert used.chat_model.provider == used.embedding_model.provider


async def test_a_missing_sdk_is_told_when_the_service_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = flows(main=[])
    document["connectors"] = [{"name": "gpt", "type": "llm-openai", "settings": {"apiKey": "k"}}]
    monkeypatch.setitem(sys.modules, "openai", None)

    with pytest.raises(ConnectorError, match=r"'gpt': llm-openai needs .*flowrt\[openai\]"):
        async with load(tmp_path, document):
            pass


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        ("llm-openai", {"apiKey": ""}, "apiKey"),
        ("llm-openai", {"reasoning": "extreme"}, "'none', 'minimal', 'low'"),
        ("llm-openai", {"maxTokens": 0}, "maxTokens"),
        ("llm-openai", {"thinking": "off"}, "thinking"),
        ("llm-gemini", {"thinking": "budgeted"}, "budgeted needs thinkingBudget"),
        ("llm-gemini", {"thinkingBudget": 9}, "thinkingBudget needs thinking: budgeted"),
        ("llm-openrouter", {"appName": ""}, "appName"),
    ],
)
def test_what_a_connector_cannot_work_with_is_refused_at_load(
    tmp_path: Path, kind: str, settings: dict[str, Any], expected: str
) -> None:
    document = flows(main=[])
    document["connectors"] = [{"name": "m", "type": kind, "settings": {"apiKey": "k", **settings}}]

    with pytest.raises(ConfigError, match=expected):
        load(tmp_path, document)


def test_the_classes_say_their_types() -> None:
    for kind, made in (
        ("llm-openai", OpenAIConnector),
        ("llm-openrouter", OpenRouterConnector),
        ("llm-gemini", GeminiConnector),
    ):
        assert registry.connectors.get(kind) is made
        assert kind == made.kind
