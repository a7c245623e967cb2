"""A compiled source, shared by every expression that has it."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from flowrt.expr.mending import Calls
from flowrt.expr.rewrite import Source
from flowrt.expr.runtime import NAMES, calls, cel, environment
from flowrt.expr.state import as_doubles, state_of, variables
from flowrt.expr.texts import compile_text, runtime_text
from flowrt.expr.values import NotJson, careful_value, json_value
from flowrt.message import Message

MAX_SOURCE = 32_768
"""Characters of a source."""

_PATH = re.compile(r"\s*(body|vars|eventID|correlationID|env)((?:\.[A-Za-z_][A-Za-z0-9_]*)*)\s*")
# `'1' == 1` is false in CEL; the checker refuses the literals all the same.
_COMPARISON = re.compile(r"found no matching overload for '(?:_==_|_!=_|@in)'")
_MIXED = re.compile(r"No matching overloads found : _[-+*/%]_\((?:int64, double|double, int64)\)")
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_CHANGES = frozenset({*NAMES, "now", "uuid"})
_NONE: Any = object()


class Problem(ValueError):
    """A source does not compile or failed on its data; the text leaves out where it stands."""


@lru_cache(maxsize=4096)
def program(source: str, names: tuple[str, ...]) -> Program:
    """The compiled `source` that sees `names` besides the usual ones. Raises `Problem`."""
    return Program(source, names)


class Program:
    """A source as the runtime holds it, with the ways round the runtime that it allows."""

    __slots__ = (
        "_calls",
        "_constant",
        "_environment",
        "_error",
        "_names",
        "_optionals",
        "_path",
        "_program",
        "_text",
        "_unwrapping",
        "_uses_vars",
    )

    def __init__(self, source: str, names: tuple[str, ...]) -> None:
        if len(source) > MAX_SOURCE:
            raise Problem(
                f"the expression has {len(source)} characters; at most {MAX_SOURCE} are allowed; "
                "split it with set-variable blocks"
            )
        parsed = Source(source)
        if parsed.empty:
            raise Problem("the expression is empty; write null where nothing is meant")
        if parsed.makes_nul or "\0" in source:
            raise Problem("the text has a NUL character, which stores and models refuse; drop it")
        self._names = names
        self._environment = environment(names)
        self._error = cel().Type.ERROR
        self._calls: Calls = calls
        self._optionals = parsed.makes_optionals
        self._uses_vars = "vars" in parsed.names
        self._program, self._text = _compiled(source, parsed, names)
        self._unwrapping: Any = None
        path = _PATH.fullmatch(source)
        self._path = None if path is None else (path[1], tuple(path[2].split(".")[1:]))
        self._constant = _NONE
        if not parsed.names & (_CHANGES | set(names)):
            self._fold()

    def value(
        self, message: Message, env: Mapping[str, str], extra: Mapping[str, Any] | None
    ) -> Any:
        """The JSON value over `message`. Raises `Problem`."""
        if self._constant is not _NONE:
            return copy.deepcopy(self._constant)
        if self._path is not None:
            found = _follow(*self._path, message, env)
            if found is not _NONE:
                return found
        state = None
        if self._names:
            given = {**variables(message, env), **dict.fromkeys(self._names), **(extra or {})}
            activation = self._environment.Activation(given)
        else:
            state = state_of(message, env, self._uses_vars)
            activation = state.activation
        value, failure = self._evaluate(activation)
        if failure and _MIXED.search(failure):
            # Flows written where every JSON number is a double rely on this arithmetic.
            doubles = state.doubles() if state else self._environment.Activation(as_doubles(given))
            value, still = self._evaluate(doubles)
            failure = failure if still else ""
        if failure:
            raise Problem(runtime_text(failure))
        return value

    def _fold(self) -> None:
        """Evaluate once where nothing of a message is used; a failure is left to each run."""
        value, failure = self._evaluate(self._environment.Activation({}))
        if not failure:
            self._constant = value

    def _evaluate(self, activation: Any) -> tuple[Any, str]:
        """The JSON value and "", or None and the text of what failed."""
        try:
            result = self._program.eval(activation)
            if self._optionals:
                return self._careful(result, activation)
            value = result.plain_value()
            # An error is returned, and reads as its text.
            if type(value) is str and result.type() == self._error:
                return None, value
            return json_value(value), ""
        except (RuntimeError, NotJson) as error:
            return None, str(error)
        finally:
            self._calls.settle()

    def _careful(self, result: Any, activation: Any) -> tuple[Any, str]:
        if result.type() != self._error:
            return careful_value(result), ""
        try:
            return None, result.value()
        except TypeError:
            # An optional has the type of an error, and nothing that could be read.
            pass
        if self._unwrapping is None:
            text = f"dyn({self._text}\n).orValue(null)"
            self._unwrapping = self._environment.compile(text)
        result = self._unwrapping.eval(activation)
        if result.type() == self._error:
            return None, result.value()
        return careful_value(result), ""


def _compiled(source: str, parsed: Source, names: tuple[str, ...]) -> tuple[Any, str]:
    """The runtime's program, and the text it is made of."""
    made = environment(names)
    texts = dict.fromkeys((parsed.for_runtime(), parsed.for_runtime(in_pieces=False)))
    for text in texts:
        try:
            return made.compile(text), text
        except RuntimeError as error:
            failure = str(error)
    lines = [line for line in failure.splitlines() if "ERROR:" in line]
    if lines and all(_COMPARISON.search(line) for line in lines):
        try:
            return made.compile(text, disable_check=True), text
        except RuntimeError as error:
            failure = str(error)
    raise Problem(compile_text(_own_failure(made, source, failure), source, names))


def _own_failure(made: Any, source: str, failure: str) -> str:
    """What the runtime says of the file's own text, whose columns are the author's."""
    try:
        made.compile(source)
    except RuntimeError as error:
        return failure if "unwrap" in str(error) else str(error)
    return failure


def _follow(root: str, names: tuple[str, ...], message: Message, env: Mapping[str, str]) -> Any:
    """What a plain path of fields leads to, or `_NONE` where CEL has to say what is wrong.

    Nothing is converted, which is most of what a 200 KB body costs, and nothing is copied: bodies
    and variables are only ever replaced.
    """
    if root == "body":
        value = message.body
    elif root == "vars":
        value = message.vars
    elif root == "env":
        value = env
    else:
        value = message.event_id if root == "eventID" else message.correlation_id
    for name in names:
        if type(value) is not dict:
            return _NONE
        value = value.get(name, _NONE)
    kind = type(value)
    if kind is int:
        return value if _SMALLEST <= value <= _LARGEST else _NONE
    return _NONE if kind is float and value - value != 0.0 else value
