"""`llm-gemini`: Google's Gemini models, through the address where they speak Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from flowrt.connectors.completions import CompletionsConnector, CompletionsSettings

_OFF, _DYNAMIC = 0, -1  # budgets with a meaning of their own


class GeminiSettings(CompletionsSettings):
    """Settings of `llm-gemini`."""

    api_key: str = Field(min_length=1, description="The API key; write it as `${GEMINI_API_KEY}`.")
    model: str = Field(default="gemini-3.5-flash", min_length=1, description="The model.")
    thinking: Literal["off", "dynamic", "budgeted"] | None = Field(
        default=None,
        description=(
            "Whether the model may think before it answers; left to the model where it is not set. "
            "Not every model can be turned `off`."
        ),
    )
    thinking_budget: int | None = Field(
        default=None, ge=1, description="Tokens of `budgeted` thinking."
    )
    embedding_model: str = Field(
        default="gemini-embedding-001",
        min_length=1,
        description="The model of blocks that embed and name none.",
    )

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.thinking == "budgeted" and self.thinking_budget is None:
            raise PydanticCustomError("needs", "thinking: budgeted needs thinkingBudget")
        if self.thinking_budget is not None and self.thinking != "budgeted":
            raise PydanticCustomError("needs", "thinkingBudget needs thinking: budgeted")
        return self


class GeminiConnector(CompletionsConnector[GeminiSettings]):
    """A Gemini model. Its thought signatures are kept and sent back as it demands.

    It needs `pip install 'flowrt[openai]'`; the SDK is imported at the first call.

    ```yaml
    connectors:
      - name: gemini
        type: llm-gemini
        settings:
          apiKey: ${GEMINI_API_KEY}
          thinking: dynamic
    ```
    """

    Settings = GeminiSettings
    kind = "llm-gemini"
    provider = "GOOGLE"
    api = "https://generativelanguage.googleapis.com/v1beta/openai"

    def extra(self) -> Mapping[str, Any]:
        """How much the model may think. `extra_body` is Google's own field for what it adds."""
        budgets = {"off": _OFF, "dynamic": _DYNAMIC, "budgeted": self.settings.thinking_budget}
        if self.settings.thinking is None:
            return {}
        budget = budgets[self.settings.thinking]
        return {"extra_body": {"google": {"thinking_config": {"thinking_budget": budget}}}}
