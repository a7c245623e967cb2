"""A text as the runtime compiled it, and what an evaluation gives."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from flowrt.expr.rewrite import Source
from flowrt.expr.runtime import calls, cel, environment
from flowrt.expr.texts import compile_text
from flowrt.expr.values import careful_value, json_value

# `'1' == 1` is false in CEL and 10 < 4.0 compares as on a number line (FB-85); the checker refuses
# the literals all the same.
_COMPARISON = re.compile(
    r"found no matching overload for '(?:(?:_==_|_!=_|@in)'|_[<>]=?_' applied to '"
    r"\((?:int|uint|double), (?:int|uint|double)\))"
)
# What its C++ exceptions become in Python: `RuntimeError` is its own, the others are the library's
# below it (`vector::reserve` for a length that no list has). `NotJson` is a `ValueError`.
_FAILURES = (RuntimeError, ValueError, IndexError, OverflowError, MemoryError)


class Problem(ValueError):
    """A source does not compile or failed on its data; the text leaves out where it stands."""


class Outcome(NamedTuple):
    """A JSON value, or the runtime's text of what failed; the other one is None or empty."""

    value: Any
    failure: str


class Compiled:
    """A text in one environment. `optionals` says whether it can make any."""

    __slots__ = ("_environment", "_error", "_inside", "_optionals", "_program", "_text")

    def __init__(self, made: Any, program: Any, text: str, optionals: bool) -> None:
        self._environment = made
        self._program = program
        self._text = text
        self._optionals = optionals
        self._error = cel().Type.ERROR
        self._inside: Compiled | None = None

    def run(self, activation: Any) -> Outcome:
        """Evaluate once. Raises `RecursionError` where the result is nested too deeply."""
        try:
            result = self._program.eval(activation)
            if self._optionals:
                return self._careful(result, activation)
            value = result.plain_value()
            # An error is returned, and reads as its text.
            if type(value) is str and result.type() == self._error:
                return Outcome(None, value)
            return Outcome(json_value(value), "")
        except RecursionError:
            raise
        except _FAILURES as error:
            return Outcome(None, str(error))
        finally:
            calls.settle()

    def _careful(self, result: Any, activation: Any) -> Outcome:
        if result.type() != self._error:
            return Outcome(careful_value(result), "")
        try:
            return Outcome(None, result.value())
        except TypeError:
            # An optional has the type of an error, and nothing that could be read.
            pass
        if self._inside is None:
            text = f"dyn({self._text}\n).orValue(null)"
            program = self._environment.compile(text)
            self._inside = Compiled(self._environment, program, text, True)
        return self._inside.run(activation)


def compiled(
    source: str, parsed: Source, names: tuple[str, ...], known: tuple[str, ...]
) -> Compiled:
    """What the runtime makes of `source`, which uses `names` out of the `known` ones.

    Raises `Problem`.
    """
    made = environment(names)
    texts = dict.fromkeys((parsed.for_runtime(), parsed.for_runtime(in_pieces=False)))
    for text in texts:
        try:
            return Compiled(made, made.compile(text), text, parsed.makes_optionals)
        except RuntimeError as error:
            failure = str(error)
    lines = [line for line in failure.splitlines() if "ERROR:" in line]
    if lines and all(_COMPARISON.search(line) for line in lines):
        try:
            program = made.compile(text, disable_check=True)
            return Compiled(made, program, text, parsed.makes_optionals)
        except RuntimeError as error:
            failure = str(error)
    raise Problem(_failure_text(made, source, failure, known))


def _failure_text(made: Any, source: str, failure: str, names: tuple[str, ...]) -> str:
    """What the runtime says of the file's own text, where that fails too: its places are right."""
    try:
        made.compile(source)
    except RuntimeError as error:
        if "unwrap" not in str(error):
            return compile_text(str(error), source, names)
    return compile_text(failure, source, names, placed=False)
