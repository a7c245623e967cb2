"""`ai-embed`: texts become vectors, in a variable."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from flowrt.agent.turn import call_embedding
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import FlowError
from flowrt.llm.connector import EmbeddingConnector
from flowrt.message import Message


class AiEmbedSettings(Settings):
    """Settings of `ai-embed`."""

    connector: str = Field(min_length=1, description="A connector that embeds texts.")
    text: Expr = Field(description="A text, or a list of texts.")
    model: str | None = Field(
        default=None, min_length=1, description="The embedding model; else the connector's."
    )
    dimensions: int | None = Field(
        default=None, ge=1, description="Length of the vectors; else the model's own."
    )
    result_var: str = Field(
        default="embedding", min_length=1, description="The variable that gets the result."
    )


class AiEmbed(Block[AiEmbedSettings]):
    """Sets a variable to the vector of a text, or to a list of vectors for a list of texts.

    The body stays. An empty list gives an empty list without a call; a blank text is an error, as
    it has no direction that could be compared.

    ```yaml
    - type: ai-embed
      connector: vectors
      text: body.question
      resultVar: question
    ```
    """

    Settings = AiEmbedSettings

    def __init__(self, settings: AiEmbedSettings, site: Site) -> None:
        super().__init__(settings, site)
        connector = site.connector(
            settings.connector, EmbeddingConnector, "one that embeds texts, such as embed-local"
        )
        self._model = connector.embedding_model
        self._address = site.address

    async def run(self, message: Message, run: Run) -> Message:
        value = self.settings.text.value(message)
        many = isinstance(value, list)
        texts = _texts(value if many else [value], many)
        vectors: list[list[float]] = []
        if texts:
            embedded = await call_embedding(
                self._model,
                texts,
                run,
                message,
                block=self._address,
                model_name=self.settings.model,
                dimensions=self.settings.dimensions,
            )
            vectors = embedded.vectors
        message.set(self.settings.result_var, vectors if many else vectors[0])
        return message


def _texts(values: list[Any], many: bool) -> list[str]:
    for index, value in enumerate(values):
        place = f"text[{index}]" if many else "text"
        if not isinstance(value, str):
            found = "null" if value is None else f"a {type(value).__name__}"
            raise FlowError(f"ai-embed: {place} is {found}; give a text or a list of texts")
        if not value.strip():
            raise FlowError(f"ai-embed: {place} is blank: there is nothing to embed")
    return values
