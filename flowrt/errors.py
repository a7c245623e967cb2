"""Every error flowrt raises, as one tree; the branch says who must act.

::

    FlowrtError
    ├── ConfigError            the author of the file: it does not load; carries every fault found
    ├── CallError              the caller: bad --data, unknown flow, a message the flow cannot take
    │   └── ThreadBusy         the caller: another run holds this thread and the policy is `reject`
    ├── FlowError              a flow failed while it ran
    │   ├── BlockError         a block of it failed; wraps the cause as `block "<label>": …`
    │   ├── ExpressionError    an expression met data it cannot work on
    │   └── AgentError         an agent run ended without an answer (refusal, iterations, budget)
    ├── OperatorError          whoever runs the service: a store, a connector or the machine
    │   ├── StoreError         a store answered with a failure
    │   │   ├── StoreUnavailable   it cannot be reached
    │   │   ├── VersionConflict    somebody else wrote first; retry on top of their write
    │   │   └── LeaseLost          a lease was held and no longer is
    │   └── ConnectorError     a connector cannot start or its outside system failed
    └── ModelError             the model provider
        ├── ModelUnavailable   it could not be reached, or kept answering 408, 409, 429 or 5xx
        ├── ModelRefused       it refused the request for good (400, 401, 403, 404, 413)
        │   └── PromptTooLong  the prompt does not fit the model's window
        └── RequestInvalid     flowrt was about to send a request the provider would refuse

Texts name where, what was found (``!r``), the rule, and the way out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "AgentError",
    "BlockError",
    "CallError",
    "ConfigError",
    "ConnectorError",
    "ExpressionError",
    "Fault",
    "FlowError",
    "FlowrtError",
    "LeaseLost",
    "ModelError",
    "ModelRefused",
    "ModelUnavailable",
    "OperatorError",
    "Position",
    "PromptTooLong",
    "RequestInvalid",
    "StoreError",
    "StoreUnavailable",
    "ThreadBusy",
    "VersionConflict",
]


class Position(NamedTuple):
    """A place in a source file; `line` and `column` count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong in a file: where, what was found, the rule, and the way out.

    `path` is the place as a reader says it, such as ``flows.chat.process[0].prompt``; it may be
    empty where only the position is known. `rule` and `way_out` may be empty.
    """

    position: Position | None
    path: str
    found: str
    rule: str = ""
    way_out: str = ""

    def __str__(self) -> str:
        where = " ".join(part for part in (str(self.position or ""), self.path) if part)
        text = "; ".join(part for part in (self.found, self.rule, self.way_out) if part)
        return f"{where}: {text}" if where else text


class FlowrtError(Exception):
    """The root of the tree; catch it to catch everything flowrt raises on purpose."""


class ConfigError(FlowrtError):
    """The file does not load. `faults` holds everything found, in file order."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        super().__init__("\n".join(str(fault) for fault in faults))


class CallError(FlowrtError):
    """The caller asked for something that cannot be done as asked."""


class ThreadBusy(CallError):
    """Another run works this thread and the block's `threadPolicy` is `reject`."""


class FlowError(FlowrtError):
    """A flow failed while it ran and nobody recovered it."""


class BlockError(FlowError):
    """A block failed; the text is ``block "<label>": <cause>``, nested once per enclosing block.

    `label` is the block's name, else its type. `__cause__` is the original exception.
    """

    def __init__(self, label: str, cause: BaseException) -> None:
        self.label = label
        super().__init__(f'block "{label}": {describe(cause)}')
        self.__cause__ = cause


class ExpressionError(FlowError):
    """An expression failed on the data it met, or at load does not compile.

    `position` is where it stands; the text begins with it. None where it is in no file.
    """

    def __init__(self, text: str, position: Position | None = None) -> None:
        self.position = position
        super().__init__(text)


class AgentError(FlowError):
    """An agent run ended without an answer and no `default` flow took over."""


class OperatorError(FlowrtError):
    """Something outside the flow is wrong: a store, a connector, the machine."""


class StoreError(OperatorError):
    """A store answered with a failure."""


class StoreUnavailable(StoreError):
    """A store cannot be reached; the text names its URL with the password masked."""


class VersionConflict(StoreError):
    """A write was based on a version that is no longer the newest.

    `expected` is the version the writer saw (0: it expected nothing), `actual` the stored one
    (0: nothing is stored).
    """

    def __init__(self, key: str, expected: int, actual: int) -> None:
        self.key, self.expected, self.actual = key, expected, actual
        super().__init__(
            f"key {key!r} is at version {actual}, the write was based on {expected}; "
            "read it again and repeat the change on top"
        )


class LeaseLost(StoreError):
    """A lease was held and no longer is: it expired, or its file or key was taken away."""


class ConnectorError(OperatorError):
    """A connector cannot start, or its outside system failed."""


class ModelError(FlowrtError):
    """The model provider failed. `status` is the HTTP status, or None where none was received."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class ModelUnavailable(ModelError):
    """The provider could not be reached, or kept answering 408, 409, 429 or 5xx."""


class ModelRefused(ModelError):
    """The provider refused the request for good (400, 401, 403, 404, 413); never sent again."""


class PromptTooLong(ModelRefused):
    """The prompt does not fit the model's window."""


class RequestInvalid(ModelError):
    """A request breaks the provider's rules and was not sent."""


def describe(error: BaseException) -> str:
    """The error's text, or its type where it has none, so that no message is ever empty."""
    return str(error) or type(error).__name__
