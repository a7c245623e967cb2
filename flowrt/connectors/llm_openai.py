"""`llm-openai`: OpenAI's models, and whatever speaks Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, ValidationInfo, model_validator

from flowrt.connectors.completions import CompletionsConnector, CompletionsSettings
from flowrt.engine.block import environ_of
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

    @model_validator(mode="after")
    def _address(self, info: ValidationInfo) -> Self:
        if self.base_url is None:
            named = environ_of(info).get("OPENAI_BASE_URL") or None
            object.__setattr__(self, "base_url", named)
        return self


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

    def extra(self) -> Mapping[str, Any]:
        """How much the model may reason."""
        effort = self.settings.reasoning
        return {} if effort == "default" else {"reasoning_effort": effort}
