"""`llm-anthropic`: Anthropic's models, and whatever speaks the Messages API."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from flowrt.engine.block import Settings, environ_of
from flowrt.engine.connector import Connector
from flowrt.engine.fields import Duration
from flowrt.llm.anthropic import API, AnthropicModel
from flowrt.llm.connector import ModelConnector, is_loopback
from flowrt.llm.model import ChatModel


class AnthropicSettings(Settings):
    """Settings of `llm-anthropic`."""

    api_key: str = Field(
        min_length=1, description="The API key; write it as `${ANTHROPIC_API_KEY}`."
    )
    model: str = Field(default="claude-sonnet-4-6", min_length=1, description="The model.")
    max_tokens: int = Field(default=4096, ge=1, description="Longest reply, in tokens.")
    base_url: str | None = Field(
        default=None, alias="baseURL", description="Where the API is; else `ANTHROPIC_BASE_URL`."
    )
    thinking: Literal["off", "adaptive", "budgeted"] = Field(
        default="off", description="Whether the model may think before it answers."
    )
    thinking_budget: int | None = Field(
        default=None, ge=1024, description="Tokens of `budgeted` thinking; less than `maxTokens`."
    )
    timeout: Duration = Field(default=600.0, description="Longest wait for one reply.")
    max_retries: int = Field(
        default=2, ge=0, description="Retries of 408, 409, 429, 5xx and broken connections."
    )

    @model_validator(mode="after")
    def _together(self, info: ValidationInfo) -> Self:
        if self.base_url is None:
            named = environ_of(info).get("ANTHROPIC_BASE_URL") or None
            object.__setattr__(self, "base_url", named)
        if self.thinking == "budgeted" and self.thinking_budget is None:
            raise PydanticCustomError("needs", "thinking: budgeted needs thinkingBudget")
        if self.thinking_budget is not None:
            if self.thinking != "budgeted":
                raise PydanticCustomError("needs", "thinkingBudget needs thinking: budgeted")
            if self.thinking_budget >= self.max_tokens:
                raise PydanticCustomError(
                    "range", "thinkingBudget must be less than maxTokens, which it is part of"
                )
        return self


class AnthropicConnector(Connector[AnthropicSettings], ModelConnector):
    """A model behind Anthropic's Messages API. The SDK is imported at the first call.

    ```yaml
    connectors:
      - name: claude
        type: llm-anthropic
        settings:
          apiKey: ${ANTHROPIC_API_KEY}
    ```
    """

    Settings = AnthropicSettings

    def __init__(self, name: str, settings: AnthropicSettings) -> None:
        super().__init__(name, settings)
        self._model = AnthropicModel(
            name=name,
            api_key=settings.api_key,
            model=settings.model,
            max_tokens=settings.max_tokens,
            base_url=settings.base_url,
            thinking=settings.thinking,
            thinking_budget=settings.thinking_budget,
            timeout=settings.timeout,
            max_retries=settings.max_retries,
        )

    @property
    def chat_model(self) -> ChatModel:
        return self._model

    @property
    def media(self) -> bool:
        return True

    @property
    def local(self) -> bool:
        return is_loopback(self.settings.base_url or API)

    async def stop(self) -> None:
        await self._model.close()
