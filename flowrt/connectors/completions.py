"""What the connectors of Chat Completions servers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import Field

from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.engine.fields import Duration
from flowrt.llm.connector import EmbeddingConnector, ModelConnector, is_loopback
from flowrt.llm.embedding import EmbeddingModel
from flowrt.llm.model import ChatModel
from flowrt.llm.openai import ChatSettings, OpenAIModel
from flowrt.llm.openai_client import Access, OpenAIClient
from flowrt.llm.openai_embedding import OpenAIEmbedding


class CompletionsSettings(Settings):
    """Settings that all of these connectors have; `model` and `embeddingModel` get defaults."""

    api_key: str = Field(min_length=1, description="The API key.")
    model: str = Field(min_length=1, description="The model.")
    max_tokens: int | None = Field(
        default=None, ge=1, description="Longest reply, in tokens; else the model's own."
    )
    base_url: str | None = Field(
        default=None, alias="baseURL", description="Where the API is, up to its version."
    )
    embedding_model: str = Field(
        min_length=1, description="The model of blocks that embed and name none."
    )
    timeout: Duration = Field(default=600.0, description="Longest wait for one reply.")
    max_retries: int = Field(
        default=2, ge=0, description="Retries of 408, 409, 429, 5xx and broken connections."
    )


S = TypeVar("S", bound=CompletionsSettings)


class CompletionsConnector(Connector[S], ModelConnector, EmbeddingConnector):
    """A chat model and an embedding model behind one server, over the same connections.

    `kind` is the connector's type, `provider` its name in traces, `api` where it is by default.
    """

    kind: ClassVar[str]
    provider: ClassVar[str]
    api: ClassVar[str]
    marks: ClassVar[bool] = False

    def __init__(self, name: str, settings: S) -> None:
        super().__init__(name, settings)
        self._client = OpenAIClient(
            Access(
                name=name,
                api_key=settings.api_key,
                base_url=settings.base_url or self.api,
                kind=self.kind,
                provider=self.provider,
                headers=self.headers(),
                timeout=settings.timeout,
                max_retries=settings.max_retries,
            )
        )
        self._chat = OpenAIModel(
            self._client,
            ChatSettings(
                model=settings.model,
                max_tokens=settings.max_tokens,
                extra=self.extra(),
                marks=self.marks,
            ),
        )
        self._embedding = OpenAIEmbedding(self._client, settings.embedding_model)

    def headers(self) -> Mapping[str, str]:
        """Headers of every request, besides the SDK's."""
        return {}

    def extra(self) -> Mapping[str, Any]:
        """Fields of every chat request, such as how much the model may reason."""
        return {}

    @property
    def chat_model(self) -> ChatModel:
        return self._chat

    @property
    def media(self) -> bool:
        return True

    @property
    def embedding_model(self) -> EmbeddingModel:
        return self._embedding

    @property
    def local(self) -> bool:
        return is_loopback(self._client.access.base_url)

    async def start(self) -> None:
        # Only looked for: importing it takes most of a second, and a run may not need it.
        self._client.require()

    async def stop(self) -> None:
        await self._client.close()
