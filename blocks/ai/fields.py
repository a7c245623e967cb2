"""Types of settings that the AI blocks share, and how they refuse what cannot be."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

from flowrt.config.nodes import plain


def refused(kind: str, text: str) -> PydanticCustomError:
    """The error to raise in a validator, with its text as it is."""
    return PydanticCustomError(kind, "{text}", {"text": text})


def unique(names: list[str], what: str) -> None:
    """Refuse a name that is used twice; `what` says of what it is the name."""
    for at, name in enumerate(names):
        if (first := names.index(name)) < at:
            both = f"{what}s[{first}] and {what}s[{at}]"
            raise refused("unique", f"two {what}s are called {name!r}: {both}; rename one")


def _not_blank(value: str) -> str:
    if not value.strip():
        raise refused("blank", "must not be blank")
    return value


Words = Annotated[str, AfterValidator(_not_blank)]
"""A text that says something."""


def _json(value: Any) -> Any:
    if not isinstance(value, str):
        return plain(value)
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise refused("json", f"this is not valid JSON: {error}") from error


def _json_object(value: Any) -> Any:
    value = _json(value)
    if not isinstance(value, dict):
        raise refused("json", "this must be a JSON object, as JSON text or as a mapping")
    return value


Json = Annotated[Any, BeforeValidator(_json)]
"""A JSON value, as JSON text or as native YAML."""

JsonObject = Annotated[
    dict[str, Any], BeforeValidator(_json_object, json_schema_input_type=str | dict[str, Any])
]
"""A JSON object, as JSON text or as a native mapping."""
