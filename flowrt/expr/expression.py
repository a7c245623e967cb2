"""Expressions: compiled once at load, evaluated against a message."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from flowrt.errors import ExpressionError, Position
from flowrt.expr.compiled import Problem
from flowrt.expr.functions import string_of
from flowrt.expr.program import Program, program
from flowrt.expr.rendering import Rendering, Templates
from flowrt.expr.values import compact, kind_of
from flowrt.message import REPLACEMENT, Message

_EMPTY: Mapping[str, str] = MappingProxyType({})


class Scope:
    """What the expressions of one service can see: its `env`, templates, and names of its own.

    Build it once per service: the converted copy of a message is shared among the expressions of
    one scope. `extra_names` are variables beside the usual ones, null where nobody gives them.
    """

    __slots__ = ("env", "extra_names", "templates")

    def __init__(
        self,
        env: Mapping[str, str] = _EMPTY,
        *,
        extra_names: tuple[str, ...] = (),
        templates: Templates | None = None,
    ) -> None:
        self.env = dict(env)
        self.extra_names = extra_names
        self.templates = templates or Templates()


DEFAULT = Scope()
"""A scope without `env`."""


class Expression:
    """A compiled CEL expression. Equal sources share what the runtime made of them.

    A result may share structure with the message it came from; values are replaced, not changed.
    """

    __slots__ = ("_env", "_program", "position", "source")

    def __init__(
        self, source: str, position: Position | None, scope: Scope, names: tuple[str, ...]
    ) -> None:
        self.source = source
        self.position = position
        self._env = scope.env
        try:
            made = program(source, (*scope.extra_names, *names))
        except Problem as problem:
            raise self._error(problem) from None
        for name in made.templates:
            if problem_text := scope.templates.missing(name):
                raise self._error(problem_text)
        self._program: Program | Rendering = made
        if made.renders:
            self._program = Rendering(made, scope.templates)

    @classmethod
    def compile(
        cls,
        source: str,
        position: Position | None = None,
        scope: Scope = DEFAULT,
        names: tuple[str, ...] = (),
    ) -> Expression:
        """Compile `source`; `names` are variables beside those of the scope.

        Raises `ExpressionError` for a source that does not compile (syntax, an unknown name or
        function, types that never fit), that asks for a template which is not declared, that is
        longer than 32 KiB or nests deeper than 32.
        """
        return cls(source, position, scope, names)

    def value(self, message: Message, extra: Mapping[str, Any] | None = None) -> Any:
        """The JSON value: integers stay integers, bytes become base64, times text (dialect 3.2).

        `extra` gives the variables named at compile. Raises `ExpressionError` where the data does
        not fit, or the result is nothing that JSON can hold.
        """
        try:
            return self._program.value(message, self._env, extra)
        except Problem as problem:
            raise self._error(problem) from None

    def test(self, message: Message, extra: Mapping[str, Any] | None = None) -> bool:
        """A condition. Raises `ExpressionError` where the result is not true or false."""
        value = self.value(message, extra)
        if value is True or value is False:
            return bool(value)
        raise self._error(f"condition must evaluate to a bool, got {kind_of(value)}")

    def text(self, message: Message, extra: Mapping[str, Any] | None = None) -> str:
        """A string as it is, anything else as compact JSON; null becomes the letters `null`."""
        value = self.value(message, extra)
        return value if isinstance(value, str) else compact(value)

    def key(self, message: Message, what: str, extra: Mapping[str, Any] | None = None) -> str:
        """An identity such as a thread or user id: a text or a number. `what` names it.

        Null, an empty or a blank text is an `ExpressionError`: turned into a key it would put
        everybody who has none into one conversation (FB-56). So are a bool, a map and a list,
        which are no identities. A text in which a NUL or half a character was replaced is one too
        many: the ids of two people could have become the same.
        """
        try:
            value = self.value(message, extra)
        except ExpressionError as error:
            raise ExpressionError(f"{what}: {error}") from error
        kind = kind_of(value)
        if kind in ("int", "double"):
            return string_of(value)
        if kind == "string" and REPLACEMENT in value:
            problem = f"it evaluates to {value!r}, in which a NUL or half a character was replaced"
            raise ExpressionError(f"{what}: {self._error(f'{problem}; no other id may become it')}")
        if kind == "string" and value.strip():
            return str(value)
        found = repr(value) if kind == "string" else "null" if value is None else f"a {kind}"
        problem = f"it evaluates to {found}; it must be a text that is not blank, or a number"
        raise ExpressionError(f"{what} is missing: {self._error(problem)}")

    def _error(self, problem: object) -> ExpressionError:
        place = f"{self.position}: " if self.position else ""
        shown = self.source if len(self.source) <= 200 else self.source[:200] + "…"
        return ExpressionError(f"{place}{problem} (in {shown!r})", self.position)
