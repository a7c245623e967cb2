"""`llm-openrouter`: the models of many providers behind OpenRouter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from flowrt.connectors.completions import CompletionsConnector, CompletionsSettings


class OpenRouterSettings(CompletionsSettings):
    """Settings of `llm-openrouter`."""

    api_key: str = Field(
        min_length=1, description="The API key; write it as `${OPENROUTER_API_KEY}`."
    )
    model: str = Field(
        default="anthropic/claude-sonnet-4.5",
        min_length=1,
        description="The model, as OpenRouter names it.",
    )
    reasoning: Literal["default", "none", "minimal", "low", "medium", "high"] = Field(
        default="default",
        description="How much the model may reason before it answers; `default` leaves it to it.",
    )
    app_name: str | None = Field(
        default=None, min_length=1, description="The application's name in OpenRouter's statistics."
    )
    site_url: str | None = Field(
        default=None,
        alias="siteURL",
        min_length=1,
        description="The application's address in OpenRouter's statistics.",
    )
    embedding_model: str = Field(
        default="openai/text-embedding-3-small",
        min_length=1,
        description="The model of blocks that embed and name none.",
    )


class OpenRouterConnector(CompletionsConnector[OpenRouterSettings]):
    """A model behind OpenRouter, which reports what each call cost.

    It needs `pip install 'flowrt[openai]'`; the SDK is imported at the first call.

    ```yaml
    connectors:
      - name: router
        type: llm-openrouter
        settings:
          apiKey: ${OPENROUTER_API_KEY}
          model: anthropic/claude-sonnet-4.5
          appName: Support desk
    ```
    """

    Settings = OpenRouterSettings
    kind = "llm-openrouter"
    provider = "OPENROUTER"
    api = "https://openrouter.ai/api/v1"
    marks = True

    def headers(self) -> Mapping[str, str]:
        """What OpenRouter attributes calls by."""
        named = {"X-Title": self.settings.app_name, "HTTP-Referer": self.settings.site_url}
        return {name: value for name, value in named.items() if value is not None}

    def extra(self) -> Mapping[str, Any]:
        """What calls cost is to be reported, and how much the model may reason."""
        extra: dict[str, Any] = {"usage": {"include": True}}
        if self.settings.reasoning != "default":
            extra["reasoning"] = {"effort": self.settings.reasoning}
        return extra
