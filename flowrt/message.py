"""The message that runs down a chain, and the four ways a chain can end."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from flowrt.ids import new_id

# The CEL runtime cuts strings at NUL and refuses lone surrogates; stores and providers refuse
# them too. They are replaced once, where text enters, so that every later part can trust it.
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"


class Outcome(Enum):
    """How a chain ended (dialect 2.3)."""

    COMPLETED = "completed"
    DROPPED = "dropped"
    STOPPED = "stopped"
    FAILED = "failed"


class Message:
    """A JSON body and variables, with an id.

    `body` and variables hold JSON values. Change them only by assigning `body` and through
    `set`, `unset` and `update`: each of those forgets the converted copy that expressions share.
    `stop` asks every enclosing chain to end with this message as its result. `raw` marks a body
    `{contentType, rawData}` that is text rather than JSON (dialect 2.2).
    """

    __slots__ = (
        "_body",
        "_vars",
        "activation",
        "body_activation",
        "body_schema",
        "correlation_id",
        "event_id",
        "raw",
        "stop",
        "trace_id",
    )

    def __init__(
        self,
        body: Any = None,
        variables: Mapping[str, Any] | None = None,
        *,
        correlation_id: str = "",
        event_id: str | None = None,
    ) -> None:
        self.event_id = event_id or new_id()
        self.correlation_id = correlation_id
        self._body = body
        self._vars: dict[str, Any] = dict(variables) if variables else {}
        self.body_schema: Any = None
        self.raw = False
        self.stop = False
        self.trace_id = ""
        # Owned by flowrt.expr: what CEL sees of this state, converted at most once. The second
        # outlives changes of the variables, for expressions that do not ask for them.
        self.activation: Any = None
        self.body_activation: Any = None

    @property
    def body(self) -> Any:
        return self._body

    @body.setter
    def body(self, value: Any) -> None:
        self._body = value
        self.activation = None
        self.body_activation = None

    @property
    def vars(self) -> Mapping[str, Any]:
        """The variables, read-only by agreement."""
        return self._vars

    def set(self, name: str, value: Any) -> None:
        """Set one variable."""
        self._vars[name] = value
        self.activation = None

    def unset(self, name: str) -> None:
        """Remove one variable; absent is fine."""
        self._vars.pop(name, None)
        self.activation = None

    def update(self, variables: Mapping[str, Any]) -> None:
        """Set several variables."""
        self._vars.update(variables)
        self.activation = None

    def replace_vars(self, variables: Mapping[str, Any]) -> None:
        """Make these the variables, and no others."""
        self._vars = dict(variables)
        self.activation = None

    def clone(self) -> Message:
        """A copy that shares nothing of the body; values of variables are shared (dialect 2.1)."""
        other = self.scoped()
        other._body = copy.deepcopy(self._body)
        other.body_activation = None
        return other

    def scoped(self) -> Message:
        """A copy with variables of its own that shares the body. Bodies are only ever replaced."""
        other = Message(
            self._body, self._vars, correlation_id=self.correlation_id, event_id=self.event_id
        )
        other.body_schema = self.body_schema
        other.raw = self.raw
        other.stop = self.stop
        other.trace_id = self.trace_id
        other.body_activation = self.body_activation
        return other

    def rekeyed(self) -> Message:
        """A clone under an event id of its own."""
        other = self.clone()
        other.event_id = new_id()
        return other

    def to_json(self) -> dict[str, Any]:
        """The message as `invoke --message` prints it."""
        out: dict[str, Any] = {"event_id": self.event_id}
        if self.correlation_id:
            out["correlation_id"] = self.correlation_id
        if self._vars:
            out["variables"] = self._vars
        out["body"] = self._body
        if self.body_schema is not None:
            out["body_schema"] = self.body_schema
        return out


def clean_text(text: str) -> str:
    """`text` with NUL and lone surrogates replaced by U+FFFD."""
    return _UNUSABLE.sub(REPLACEMENT, text) if _UNUSABLE.search(text) else text


def clean(value: Any) -> Any:
    """A decoded JSON value as it may enter the runtime: `clean_text` applied to every string.

    Returns the same object where nothing had to change.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        items = [clean(item) for item in value]
        return (
            items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        )
    if isinstance(value, dict):
        pairs = [(clean_text(key), clean(item)) for key, item in value.items()]
        same = all(
            new_key is old_key and new is old
            for (new_key, new), (old_key, old) in zip(pairs, value.items(), strict=True)
        )
        return value if same else dict(pairs)
    return value
