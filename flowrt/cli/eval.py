"""`flowrt eval`: one expression, without a service."""

from __future__ import annotations

import json
from typing import Any

from flowrt.cli.arguments import as_utf8, read_data, read_object
from flowrt.cli.exits import DONE
from flowrt.errors import CallError, ExpressionError
from flowrt.expr import Expression, Scope
from flowrt.message import Message, clean


def eval_command(
    expression: str, data: str | None, variables: str | None, environment: str | None
) -> int:
    """Print the value, or what is wrong, as one line of JSON. The exit code is 0 either way."""
    message = Message(clean(read_data(data)), clean(read_object(variables, "--vars")))
    scope = Scope(_texts(clean(read_object(environment, "--env"))))
    found: dict[str, Any]
    try:
        value = Expression.compile(as_utf8(expression), None, scope).value(message)
        found = {"ok": True, "result": value}
    except ExpressionError as error:
        found = {"ok": False, "result": None, "error": str(error)}
    print(json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    return DONE


def _texts(environment: dict[str, Any]) -> dict[str, str]:
    for name, value in environment.items():
        if not isinstance(value, str):
            raise CallError(f"--env: {name!r} must be a text, found {value!r}; put it in quotes")
    return environment
