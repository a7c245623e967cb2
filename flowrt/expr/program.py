"""A compiled source, shared by every expression that has it."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from flowrt.expr.compiled import Outcome, Problem, compiled
from flowrt.expr.rewrite import Source
from flowrt.expr.runtime import NAMES, environment
from flowrt.expr.state import State, state_of, variables
from flowrt.expr.texts import runtime_text
from flowrt.message import Message

MAX_SOURCE = 32_768
"""Characters of a source."""

_PATH = re.compile(r"\s*(body|vars|eventID|correlationID|env)((?:\.[A-Za-z_][A-Za-z0-9_]*)*)\s*")
_MIXED = re.compile(
    r"No matching overloads found : _[-+*/%]_\((?:u?int64, double|double, u?int64)\)"
    r"|No matching overloads found : math\.(?:round|ceil|floor|trunc|is[A-Z]\w+)\(u?int64\)"
    r"|sort\(\): list elements must have the same type"
)
_TOO_LARGE = re.compile(r"Integer value '-?\d+' out of range")
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
# What is sealed has a nonce, which must be another each time.
_CHANGES = frozenset({*NAMES, "now", "uuid", "templateResource", "toAes", "toChacha"})
_NONE: Any = object()


@lru_cache(maxsize=4096)
def program(source: str, names: tuple[str, ...]) -> Program:
    """The compiled `source` that sees `names` besides the usual ones. Raises `Problem`."""
    return Program(source, names)


class Program:
    """A source as the runtime holds it, with the ways round the runtime that it allows."""

    __slots__ = (
        "_compiled",
        "_constant",
        "_names",
        "_path",
        "_uses_vars",
        "renders",
        "templates",
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
        if parsed.binds:
            raise Problem(
                "cel.bind() is not in the dialect; set a variable with a set-variable block before"
            )
        if parsed.makes_nul or "\0" in source:
            raise Problem("the text has a NUL character, which stores and models refuse; drop it")
        # What sees no name of its own shares the message's converted copy.
        self._names = tuple(name for name in names if name in parsed.names)
        self._uses_vars = "vars" in parsed.names
        self._compiled = compiled(source, parsed, self._names, names)
        self.renders = "templateResource" in parsed.names
        self.templates = parsed.templates
        path = _PATH.fullmatch(source)
        self._path = None if path is None else (path[1], tuple(path[2].split(".")[1:]))
        self._constant = _NONE
        if not self._names and not parsed.names & _CHANGES:
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
        if self._names:
            state = self._state(message, env, extra or {})
        else:
            state = state_of(message, env, self._uses_vars)
        try:
            value, failure = self._compiled.run(state.activation)
            if failure:
                value, failure = self._again(state, failure)
        except RecursionError:
            raise Problem("the data is nested too deeply") from None
        if failure:
            raise Problem(runtime_text(failure))
        return value

    def _state(self, message: Message, env: Mapping[str, str], extra: Mapping[str, Any]) -> State:
        """A state of this program's own. Apart from `value`, in which a comprehension costs 5%."""
        given = variables(message, env)
        given.update({name: extra.get(name) for name in self._names})
        return State(given, self._names, env)

    def _again(self, state: State, failure: str) -> Outcome:
        """Evaluate over data with other numbers in it, where numbers were what failed."""
        outcome = Outcome(None, failure)
        if _TOO_LARGE.search(failure):
            outcome = self._compiled.run(state.fitted())
        if _MIXED.search(outcome.failure):
            # Flows written where every JSON number is a double rely on this.
            doubles = self._compiled.run(state.doubles())
            return outcome if doubles.failure else doubles
        return outcome

    def _fold(self) -> None:
        """Evaluate once where nothing of a message is used; a failure is left to each run."""
        value, failure = self._compiled.run(environment().Activation({}))
        if not failure:
            self._constant = value


def _follow(root: str, names: tuple[str, ...], message: Message, env: Mapping[str, str]) -> Any:
    """What a plain path of fields leads to, or `_NONE` where CEL has to say what is wrong.

    Nothing is converted, which is most of what a 200 KB body costs, and what stands in the message
    is not copied: bodies and the values of variables are only ever replaced.
    """
    if root == "body":
        value = message.body
    elif root in ("vars", "env"):
        value = message.vars if root == "vars" else env
        if not names:
            # The message changes its own in place.
            return dict(value)
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
