"""What a YAML syntax error means to whoever wrote the file."""

from __future__ import annotations

import re

from yaml import MarkedYAMLError, YAMLError

from flowrt.errors import Fault, Position

_BRACKETS = "a '[' or '{' is opened here and its inside does not parse"

# The texts of libyaml and of PyYAML's own parser, which differ; the first match counts. True as
# third part: the mistake is where the construct begins, not where the parser gave up.
_MEANINGS: list[tuple[str, str, str, bool]] = [
    (r"maximum nesting depth", "nested too deeply", "", True),
    (r"incompatible YAML", "the %YAML line asks for another version", "remove the line", False),
    (
        r"found a tab character|character '\\t' that cannot start|violates? (the )?indentation",
        "a tab is used for indentation",
        "indent with spaces",
        False,
    ),
    (
        r"mapping values are not allowed|while scanning a plain scalar.*found unexpected ':'",
        "a ':' stands where no key can be",
        "check the indentation, or quote the text if the ':' belongs to it",
        False,
    ),
    (
        r"scanning a (simple key|plain scalar)|could not find expected ':'",
        "this line is neither a `key: value` nor part of a text",
        "add the ':' and a space after it, or check the indentation",
        True,
    ),
    (
        r"quoted scalar.*(unexpected end of stream|document separator)",
        "a quoted text is opened here and never closed",
        "close the quote",
        True,
    ),
    (
        r"unknown escape|escape sequence|hexa?decimal|escape (character|code)",
        "an unknown escape in a double-quoted text",
        "write a backslash as \\\\, or use single quotes",
        False,
    ),
    (
        r"flow (sequence|mapping|node)",
        _BRACKETS,
        "close it, put ',' between its entries, or quote the text if the bracket belongs to it",
        True,
    ),
    (
        r"block collection|expected '-' indicator",
        "this line does not belong to the list above it",
        "start it with `- `, or check the indentation",
        False,
    ),
    (
        r"block mapping|expected key",
        "this line does not belong to the keys above it",
        "check the indentation and quotes",
        False,
    ),
    (
        r"cannot start any token",
        "the text starts with a character that YAML keeps for itself",
        "quote the text",
        False,
    ),
    (
        r"undefined tag handle|while (parsing|scanning) a tag",
        "a text starts with '!', which YAML reads as a tag",
        "quote the text",
        False,
    ),
    (
        r"while scanning an? (alias|anchor)",
        "a text starts with '*' or '&', which YAML reads as an alias or anchor",
        "quote the text",
        False,
    ),
    (r"block scalar", "a text block (`|` or `>`) starts badly", "put it on a line alone", False),
    (r"document start", "the YAML document ends here but the file goes on", "", False),
]


def syntax_fault(error: YAMLError, text: str, file: str) -> Fault:
    """The parser's error as a fault with its place and, where known, the likely mistake."""
    if not isinstance(error, MarkedYAMLError):
        return Fault(Position(file, 1, 1), "", f"not valid YAML: {error}")
    said = f"{error.context or ''} {error.problem or ''}".strip()
    found, way_out, at_start = _meaning(said)
    mark = error.problem_mark or error.context_mark
    if at_start and error.context_mark is not None:
        mark = error.context_mark
    if mark is None:
        return Fault(Position(file, 1, 1), "", found, way_out=way_out)
    position = Position(file, mark.line + 1, mark.column + 1)
    if found == _BRACKETS and "${" in _line(text, position):
        way_out = "quote the '${…}': inside brackets YAML reads its '{' as a mapping"
    if _at_tab(text, position):
        found, way_out = "a tab is used for indentation", "indent with spaces"
    return Fault(position, "", found, way_out=way_out)


def _meaning(said: str) -> tuple[str, str, bool]:
    for pattern, found, way_out, at_start in _MEANINGS:
        if re.search(pattern, said, re.DOTALL):
            return found, way_out, at_start
    return f"not valid YAML: {said}", "", False


def _at_tab(text: str, position: Position) -> bool:
    line = _line(text, position)
    indent = line[: len(line) - len(line.lstrip())]
    return "\t" in indent and position.column <= len(indent) + 1


def _line(text: str, position: Position) -> str:
    lines = text.split("\n")
    return lines[position.line - 1] if position.line <= len(lines) else ""
