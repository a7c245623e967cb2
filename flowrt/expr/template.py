"""Templates: text with `{{ CEL }}` spans, found once at load. Data is never read as a template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowrt.errors import ExpressionError, Position
from flowrt.expr.catalogue import SOME_SCOPES
from flowrt.expr.expression import DEFAULT, Expression, Scope
from flowrt.expr.rewrite import pieces_of
from flowrt.message import Message

_OPENING = frozenset({"(", "[", "[?", "{"})
_CLOSING = frozenset({")", "]", "}"})


class Template:
    """A compiled template; `render` gives its text for a message."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[str | Expression]) -> None:
        self._parts = parts

    @classmethod
    def compile(
        cls,
        text: str,
        position: Position | None = None,
        scope: Scope = DEFAULT,
        errors: list[ExpressionError] | None = None,
    ) -> Template:
        """Compile every span of `text`, whose first character stands at `position`.

        Raises `ExpressionError` with the span's own line and column for one that is not closed,
        is empty, or does not compile. With a list of `errors`, those are added to it instead.
        """
        parts: list[str | Expression] = []
        at = 0
        while (start := text.find("{{", at)) >= 0:
            place = _place(text, start, position)
            end = _span_end(text, start + 2)
            parts.append(text[at:start])
            at = end + 2 if end >= 0 else len(text)
            try:
                parts.append(_span(text, start + 2, end, place, scope))
            except ExpressionError as error:
                if errors is None:
                    raise
                errors.append(error)
        parts.append(text[at:])
        return cls([part for part in parts if part != ""])

    def render(self, message: Message, extra: Mapping[str, Any] | None = None) -> str:
        """The text, each span replaced by its value: text as it is, anything else as JSON.

        What a span yields is never looked through for spans again (FB-90).
        """
        return "".join(
            part if isinstance(part, str) else part.text(message, extra) for part in self._parts
        )


def _span(text: str, start: int, end: int, place: Position, scope: Scope) -> Expression:
    if end < 0:
        raise ExpressionError(f"{place}: a `{{{{` is never closed; end it with `}}}}`", place)
    source = text[start:end].strip()
    if not source:
        raise ExpressionError(f"{place}: `{{{{ }}}}` is empty; write an expression in it", place)
    return Expression.compile(source, place, scope, SOME_SCOPES)


def _span_end(text: str, start: int) -> int:
    """Where the span's `}}` stands, or -1; one inside a CEL string or a map does not end it."""
    at, depth = start, 0
    for kind, piece in pieces_of(text, start):
        if kind == "mark":
            if depth == 0 and piece == "}":
                return at if text.startswith("}}", at) else -1
            depth += (piece in _OPENING) - (piece in _CLOSING)
        at += len(piece)
    return -1


def _place(text: str, at: int, position: Position | None) -> Position:
    """The place of `text[at]`; the first line of `text` starts in `position`'s column."""
    file, line, column = position or Position("<template>", 1, 1)
    lines = text.count("\n", 0, at)
    start = text.rfind("\n", 0, at) + 1
    return Position(file, line + lines, at - start + (1 if lines else column))
