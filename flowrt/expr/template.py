"""Templates: text with `{{ CEL }}` spans, found once at load. Data is never read as a template."""

from __future__ import annotations

from flowrt.errors import ExpressionError, Position
from flowrt.expr.expression import DEFAULT_SCOPE, Expression, Scope
from flowrt.expr.macros import tokens
from flowrt.message import Message


class Template:
    """A compiled template; `render` gives its text for a message."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[str | Expression]) -> None:
        self._parts = parts

    @classmethod
    def compile(
        cls, text: str, position: Position | None = None, scope: Scope = DEFAULT_SCOPE
    ) -> Template:
        """Compile every span. Raises `ExpressionError` with the span's own line and column."""
        parts: list[str | Expression] = []
        at = 0
        while (start := text.find("{{", at)) >= 0:
            place = _place(text, start, position)
            end = _span_end(text, start + 2)
            if end < 0:
                raise ExpressionError(f"{place}: a `{{{{` is never closed with `}}}}`")
            parts.append(text[at:start])
            parts.append(Expression.compile(text[start + 2 : end].strip(), place, scope))
            at = end + 2
        parts.append(text[at:])
        return cls([part for part in parts if part != ""])

    def render(self, message: Message) -> str:
        """The text, each span replaced by its value: text as it is, anything else as JSON."""
        return "".join(
            part if isinstance(part, str) else part.text(message) for part in self._parts
        )


def _span_end(text: str, start: int) -> int:
    """Where the span's `}}` stands; one inside a CEL string or a map literal does not end it."""
    at, depth = start, 0
    for piece in tokens(text, start):
        if piece == "{":
            depth += 1
        elif piece == "}" and depth:
            depth -= 1
        elif piece == "}" and text.startswith("}}", at):
            return at
        at += len(piece)
    return -1


def _place(text: str, at: int, position: Position | None) -> Position:
    line = text.count("\n", 0, at)
    column = at - (text.rfind("\n", 0, at) + 1)
    file, first = (position.file, position.line) if position else ("<template>", 1)
    return Position(file, first + line, column + 1)
