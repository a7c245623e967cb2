"""`llm-openai`: OpenAI's models, and whatever speaks Chat Completions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from flowrt.connectors.completions import CompletionsConnector, CompletionsSettings
from flowrt.llm.openai import API


class OpenAISettings(CompletionsSettings):
    """Settings of `llm-openai`."""

    api_key: str = Field(
        min_length=1,
        description="The API key; write it as `${OPENAI_API_KEY}`. Local servers take any text.",
    )
    model: str = Field(default="gpt-5.4", min_length=1, description="The model.")
    base_url: str | None = Field(
        default=None,
        alias="baseURL",
        description=(
            "Where the API is, up to its version, such as `http://localhost:11434/v1`; "
            "else `OPENAI_BASE_URL`."
        ),
    )
    reasoning: Literal["default", "none", "minimal", "low", "medium", "high"] = Field(
        default="default",
        description="How much the model may reason before it answers; `default` leaves it to it.",
    )
    embedding_model: str = Field(
        default="text-embedding-3-small",
        min_length=1,
        description="The model of blocks that embed and name none.",
    )


class OpenAIConnector(CompletionsConnector[OpenAISettings]):
    """A model behind OpenAI's Chat Completions API, or a server that speaks it.

    Ollama, vLLM and llama.cpp do. It needs `pip install 'flowrt[openai]'`; the SDK is imported at
    the first call.

    ```yaml
    connectors:
      - name: gpt
        type: llm-openai
        settings:
          apiKey: ${OPENAI_API_KEY}
    ```
    """

    Settings = OpenAISettings
    kind = "llm-openai"
    provider = "OPENAI"
    api = API

    def default_url(self) -> str:
        """Where the API is without `baseURL`."""
        return os.environ.get("OPENAI_BASE_URL") or self.api

    def extra(self) -> Mapping[str, Any]:
        """How much the model may reason."""
        effort = self.settings.reasoning
        return {} if effort == "default" else {"reasoning_effort": effort}
