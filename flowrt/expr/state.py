"""What CEL sees of a message: converted on first use, and shared until the message changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowrt.expr.runtime import environment
from flowrt.expr.values import fitting
from flowrt.message import Message

_MOST_EVALUATIONS = 1000
"""Evaluations of one activation. It holds the memory of each (350 bytes of a typical one)."""


class State:
    """The variables of one message state as the runtime holds them.

    The runtime converts a variable when an expression first touches it, and keeps it with the
    activation: 3.6 ms for a body of 200 KB, after which an evaluation costs 1.5 us.
    """

    __slots__ = ("_data", "_doubles", "_environment", "activation", "env", "left")

    def __init__(
        self, data: dict[str, Any], names: tuple[str, ...], env: Mapping[str, str]
    ) -> None:
        self.env = env
        self.left = _MOST_EVALUATIONS
        self._environment = environment(names)
        self._data = data
        self._doubles: Any = None
        self.activation = self._environment.Activation(data)

    def doubles(self) -> Any:
        """An activation whose integers are doubles."""
        if self._doubles is None:
            self._doubles = self._environment.Activation(_as_doubles(self._data))
        return self._doubles

    def fitted(self) -> Any:
        """The activation, its integers beyond 64 bits doubles from now on."""
        self._data = fitting(self._data)
        self.activation = self._environment.Activation(self._data)
        return self.activation


def state_of(message: Message, env: Mapping[str, str], uses_vars: bool) -> State:
    """The message's state, made where there is none yet.

    An expression that does not ask for `vars` also takes the state from before they changed, so
    that a large body is not converted again for each variable that is set.
    """
    state: State | None = message.activation
    if state is None and not uses_vars:
        state = message.body_activation
    if state is None or state.env is not env or state.left <= 0:
        state = State(variables(message, env), (), env)
        message.activation = message.body_activation = state
    state.left -= 1
    return state


def variables(message: Message, env: Mapping[str, str]) -> dict[str, Any]:
    """The variables of every expression, by name."""
    return {
        "body": message.body,
        "vars": message.vars,
        "eventID": message.event_id,
        "correlationID": message.correlation_id,
        "env": env,
    }


def _as_doubles(value: Any) -> Any:
    if type(value) is int:
        return float(value)
    if isinstance(value, dict):
        return {key: _as_doubles(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_doubles(item) for item in value]
    return value
