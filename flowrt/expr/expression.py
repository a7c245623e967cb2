"""Expressions: compiled once at load, evaluated against a message."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from flowrt.errors import ExpressionError, Position
from flowrt.expr import patterns
from flowrt.expr.macros import NOW, expand
from flowrt.expr.runtime import cel, environment
from flowrt.expr.texts import compile_text, runtime_text
from flowrt.expr.values import json_value
from flowrt.message import Message

MAX_SOURCE = 32_768
"""Characters of an expression's source."""

_EMPTY: Mapping[str, Any] = MappingProxyType({})

# A name outside a string: what decides whether an expression can be folded.
_USES_DATA = re.compile(r"\b(?:body|vars|eventID|correlationID|env|uuid|flowrt_now)\b")

# `'1' == 1` is false in CEL; the checker refuses the literals all the same.
_COMPARISON = re.compile(r"found no matching overload for '(?:_==_|_!=_|@in)'")

_MIXED = re.compile(r"No matching overloads found : _[-+*/%]_\((?:int64, double|double, int64)\)")


class Scope:
    """What the expressions of one service share: its `env`."""

    __slots__ = ("env",)

    def __init__(self, env: Mapping[str, str] = _EMPTY) -> None:
        self.env = dict(env)


DEFAULT_SCOPE = Scope()


class Expression:
    """A compiled CEL expression. Made by `compile`, which caches within a scope."""

    __slots__ = (
        "_constant",
        "_environment",
        "_error_type",
        "_folded",
        "_names",
        "_optional",
        "_program",
        "_scope",
        "_uses_now",
        "position",
        "source",
    )

    def __init__(
        self, source: str, position: Position | None, scope: Scope, names: tuple[str, ...]
    ) -> None:
        self.source = source
        self.position = position
        self._scope = scope
        self._names = names
        if len(source) > MAX_SOURCE:
            raise self._error(
                f"the expression has {len(source)} characters; at most {MAX_SOURCE} are allowed"
            )
        expanded, self._uses_now = expand(source)
        if re.search(r"\bregex\s*\.", source) and not patterns.available():
            raise self._error("regex.* needs RE2; install it with `pip install 'flowrt[regex]'`")
        self._environment = environment(names)
        self._error_type = cel().Type.ERROR
        self._program = self._compile(expanded)
        self._optional: Any = None
        self._folded = False
        self._constant: Any = None
        if not names and not _USES_DATA.search(expanded):
            self._fold()

    @classmethod
    def compile(
        cls,
        source: str,
        position: Position | None = None,
        scope: Scope = DEFAULT_SCOPE,
        *,
        names: tuple[str, ...] = (),
    ) -> Expression:
        """Compile `source`; `names` are variables beside those of every expression.

        Raises `ExpressionError` where it does not compile: syntax, unknown names, size, nesting.
        """
        return cls(source, position, scope, names)

    def value(self, message: Message, extra: Mapping[str, Any] | None = None) -> Any:
        """The JSON value: integers stay integers, bytes become base64, times text (dialect 3.2).

        `extra` gives the variables named at compile. Raises `ExpressionError` where the data does
        not fit, or the result is nothing that JSON can hold.
        """
        if self._folded:
            constant = self._constant
            return copy.deepcopy(constant) if isinstance(constant, list | dict) else constant
        result = self._evaluate(message, extra)
        try:
            return json_value(result.plain_value())
        except ValueError as error:
            raise self._error(str(error)) from error
        except (TypeError, SystemError) as error:
            if isinstance(error, SystemError):
                raise self._error("an optional inside the result; use orValue") from error
            return self._unwrapped(message, extra)

    def test(self, message: Message, extra: Mapping[str, Any] | None = None) -> bool:
        """A condition. Raises `ExpressionError` where the result is not true or false."""
        value = self.value(message, extra)
        if isinstance(value, bool):
            return value
        raise self._error(f"condition must evaluate to a bool, got {_type_of(value)}")

    def text(self, message: Message, extra: Mapping[str, Any] | None = None) -> str:
        """A string as it is, anything else as compact JSON; null becomes the letters `null`."""
        value = self.value(message, extra)
        if isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def key(self, message: Message, what: str, extra: Mapping[str, Any] | None = None) -> str:
        """An identity: text or a number. `what` names it in errors.

        Null, an empty or a blank text is an `ExpressionError`: turned into a key it would put
        everybody who has none into one conversation (FB-56).
        """
        try:
            value = self.value(message, extra)
        except ExpressionError as error:
            raise ExpressionError(f"{what}: {error}") from error
        if isinstance(value, int | float) and not isinstance(value, bool):
            return json.dumps(value)
        if isinstance(value, str) and value.strip():
            return value
        found = "null" if value is None else repr(value)
        raise ExpressionError(
            f"{what}: {self._error(f'evaluates to {found}; it must be a non-empty text or number')}"
        )

    def _compile(self, expanded: str) -> Any:
        try:
            return self._environment.compile(expanded)
        except RuntimeError as error:
            text = str(error)
        lines = [line for line in text.splitlines() if "ERROR:" in line]
        if lines and all(_COMPARISON.search(line) for line in lines):
            try:
                return self._environment.compile(expanded, disable_check=True)
            except RuntimeError as error:
                text = str(error)
        raise self._error(compile_text(text, self._names))

    def _fold(self) -> None:
        """Evaluate once where nothing of a message is used; a failure is then a load error."""
        self._constant = self.value(Message())
        self._folded = True

    def _evaluate(self, message: Message, extra: Mapping[str, Any] | None) -> Any:
        result, failure = self._run(self._activation(message, extra))
        if not failure:
            return result
        if _MIXED.search(failure):
            # Flows written where every JSON number is a double rely on this arithmetic.
            result, again = self._run(self._as_doubles(message, extra))
            if not again:
                return result
        raise self._error(runtime_text(failure))

    def _run(self, activation: Any) -> tuple[Any, str]:
        """The result, or the runtime's text of what failed: it returns some and raises others."""
        try:
            result = self._program.eval(activation=activation)
        except RuntimeError as error:
            return None, str(error)
        if result.type() == self._error_type:
            try:
                return None, str(result.value())
            except TypeError:
                # An optional carries the type of an error, and nothing that could be read.
                return result, ""
        return result, ""

    def _activation(self, message: Message, extra: Mapping[str, Any] | None) -> Any:
        if extra is None and not self._uses_now and not self._names:
            if message.activation is None or message.activation[0] is not self._scope:
                data = self._data(message)
                message.activation = (self._scope, self._environment.Activation(data))
            return message.activation[1]
        data = self._data(message)
        data[NOW] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        return self._environment.Activation({**data, **(extra or {})})

    def _data(self, message: Message) -> dict[str, Any]:
        return {
            "body": message.body,
            "vars": message.vars,
            "eventID": message.event_id,
            "correlationID": message.correlation_id,
            "env": self._scope.env,
        }

    def _as_doubles(self, message: Message, extra: Mapping[str, Any] | None) -> Any:
        data = {**self._data(message), **(extra or {})}
        data = {name: _doubles(value) for name, value in data.items()}
        data[NOW] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        return self._environment.Activation(data)

    def _unwrapped(self, message: Message, extra: Mapping[str, Any] | None) -> Any:
        if self._optional is None:
            wrapped = f"({expand(self.source)[0]}).orValue(null)"
            self._optional = self._environment.compile(wrapped, disable_check=True)
        result = self._optional.eval(activation=self._activation(message, extra))
        try:
            return json_value(result.plain_value())
        except ValueError as error:
            raise self._error(str(error)) from error

    def _error(self, text: str) -> ExpressionError:
        place = f"{self.position}: " if self.position else ""
        shown = self.source if len(self.source) <= 200 else self.source[:200] + "…"
        return ExpressionError(f"{place}{text} (in {shown!r})")


def _doubles(value: Any) -> Any:
    if type(value) is int:
        return float(value)
    if isinstance(value, dict):
        return {key: _doubles(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_doubles(item) for item in value]
    return value


def _type_of(value: Any) -> str:
    names = {str: "string", int: "int", float: "double", list: "list", dict: "map"}
    return names.get(type(value), "null")
