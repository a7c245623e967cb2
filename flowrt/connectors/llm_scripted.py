"""`llm-scripted`: a model that answers from a list, without key or network."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.engine.fields import Plain
from flowrt.expr import Expression
from flowrt.llm.connector import ModelConnector
from flowrt.llm.model import ChatModel
from flowrt.llm.scripted import REQUEST_FIELDS, ScriptedModel, ScriptedReply
from flowrt.message import Message

_REPLIES = TypeAdapter(list[ScriptedReply])


class ScriptedSettings(Settings):
    """Settings of `llm-scripted`: either `replies` or `file`."""

    replies: Plain = Field(
        default=None,
        description=(
            "The entries: text, toolCalls, thinking, content, stopReason, usage, error, delay, "
            "each with an optional `when` over `request`."
        ),
    )
    file: str | None = Field(
        default=None, description="A YAML or JSON file with the list, from the working directory."
    )
    repeat: bool = Field(
        default=False, description="Begin again when the entries without `when` are used up."
    )

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.replies is None) == (self.file is None):
            raise PydanticCustomError("one_of", "give either replies or file")
        read_script(self)
        return self


def read_script(settings: ScriptedSettings) -> list[ScriptedReply]:
    """The entries, validated. Raises `PydanticCustomError` with the first fault."""
    raw: Any = settings.replies
    if settings.file is not None:
        raw = _read(settings.file)
    try:
        return _REPLIES.validate_python(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise PydanticCustomError(
            "script", "replies[{place}]: {text}", {"place": place, "text": first["msg"]}
        ) from error


def _read(file: str) -> Any:
    from flowrt.config.nodes import plain
    from flowrt.config.yaml import load_yaml

    try:
        return plain(load_yaml(Path(file).read_bytes(), file)).get("replies")
    except OSError as error:
        raise PydanticCustomError(
            "script", "cannot read {file}: {why}", {"file": file, "why": str(error)}
        ) from error


class ScriptedConnector(Connector[ScriptedSettings], ModelConnector):
    """A model that plays a script: for demos, tests and benchmarks.

    Entries with `when` answer every request for which the condition holds; the others answer once
    each, in order. A `file` is a YAML or JSON mapping with the list under `replies`.

    ```yaml
    connectors:
      - name: model
        type: llm-scripted
        settings:
          replies:
            - when: request.text.contains("My name is Sam")
              text: '{"reply": "Your name is Sam."}'
            - text: '{"reply": "Hello."}'
    ```
    """

    Settings = ScriptedSettings

    def __init__(self, name: str, settings: ScriptedSettings) -> None:
        super().__init__(name, settings)
        replies = read_script(settings)
        matchers = [condition(reply.when) for reply in replies]
        self._model = ScriptedModel(
            replies,
            name=name,
            matchers=matchers,
            fields=fields_asked([reply.when for reply in replies if reply.when is not None]),
            repeat=settings.repeat,
        )

    @property
    def chat_model(self) -> ChatModel:
        return self._model

    @property
    def media(self) -> bool:
        return True

    @property
    def local(self) -> bool:
        return True

    @property
    def script(self) -> ScriptedModel:
        """The model itself, with the requests it was sent."""
        return self._model


def fields_asked(conditions: list[str]) -> list[str]:
    """What the conditions ask of a request; everything where one of them takes it whole."""
    if any(re.search(r"\brequest\b(?!\s*\.\s*\w)", when) for when in conditions):
        return list(REQUEST_FIELDS)
    asked = {name for when in conditions for name in re.findall(r"\brequest\s*\.\s*(\w+)", when)}
    return [name for name in REQUEST_FIELDS if name in asked]


def condition(when: str | None) -> Callable[[dict[str, Any]], bool] | None:
    """A `when` over `request`, compiled; None for an entry without. Raises `ExpressionError`."""
    if when is None:
        return None
    expression = Expression.compile(when, names=("request",))
    nobody = Message()
    return lambda view: expression.test(nobody, {"request": view})
