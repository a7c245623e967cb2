"""The types of settings: what a block writes behind a setting's name.

Each is a pydantic type. Validation compiles: an `Expr` field holds a compiled expression, a
`Duration` holds seconds. Chains are only shaped here; a block binds them in its constructor through
its `Site`, which knows their address.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from flowrt.config.nodes import Items, Table, Text, plain
from flowrt.errors import ExpressionError
from flowrt.expr import Expression, Scope

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


class _Compiled:
    """Compiles a setting into an `Expression` bound to the service's scope."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __get_pydantic_core_schema__(self, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self.compile)

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": ["string", "number", "boolean"], "format": "cel"}

    def compile(self, value: Any, info: core_schema.ValidationInfo[Any]) -> Expression:
        if isinstance(value, Expression):
            return value
        if value is None or isinstance(value, list | dict):
            raise PydanticCustomError(
                "expression",
                "expected a CEL expression, found {found}; write it as a string",
                {"found": "nothing" if value is None else f"a {_kind(value)}"},
            )
        # `value: 100` and `value: true` are YAML scalars and the CEL literals of the same text.
        source = value if isinstance(value, str) else _literal(value)
        position = value.position if isinstance(value, Text) else None
        scope = info.context.scope if info.context is not None else Scope()
        try:
            return Expression.compile(str(source), position, scope, names=self.names)
        except ExpressionError as error:
            text = str(error).removeprefix(f"{position}: ") if position else str(error)
            raise PydanticCustomError("expression", "{text}", {"text": text}) from error


def _literal(value: bool | float) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _kind(value: Any) -> str:
    return "mapping" if isinstance(value, dict) else "list"


Expr = Annotated[Expression, _Compiled()]
"""A CEL expression over the message (dialect 3.5)."""


def expr_over(*names: str) -> Any:
    """An `Expr` that also sees the variables `names`, such as `input` and `tool`."""
    return Annotated[Expression, _Compiled(*names)]


def parse_duration(value: Any) -> float:
    """Seconds from ``30s``, ``1h30m``, ``100ms``, ``0`` or a number of seconds."""
    value = plain(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        text = str(value).strip()
        sign = -1.0 if text.startswith("-") else 1.0
        text = text.removeprefix("-")
        parts = _DURATION.findall(text)
        if text == "0":
            return 0.0
        if not parts or "".join(number + unit for number, unit in parts) != text:
            raise PydanticCustomError(
                "duration", "expected a duration such as 30s, 5m or 1h30m, found {found}",
                {"found": repr(value) if not isinstance(value, str) else repr(str(value))},
            )  # fmt: skip
        seconds = sign * sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds < 0:
        raise PydanticCustomError("duration", "a duration cannot be negative", {})
    return seconds


class _Duration:
    def __get_pydantic_core_schema__(self, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(parse_duration)

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": ["string", "number"], "examples": ["30s", "5m"]}


Duration = Annotated[float, _Duration()]
"""A length of time, in seconds."""


class Branch(NamedTuple):
    """A chain as it stands in the file, not yet bound: its blocks, and the slot's own table."""

    blocks: Items | list[Any]
    name: str = ""


class _BlockList:
    """A bare list of blocks."""

    def __get_pydantic_core_schema__(self, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.shape)

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "array", "format": "blocks"}

    def shape(self, value: Any) -> Branch:
        if not isinstance(value, list):
            raise PydanticCustomError("blocks", "expected a list of blocks", {})
        return Branch(value)


_ROOT_ONLY = {
    "source": "sub-flow must not declare a source",
    "workers": "sub-flow must not declare workers, buffer, or pool",
    "buffer": "sub-flow must not declare workers, buffer, or pool",
    "pool": "sub-flow must not declare workers, buffer, or pool",
    "error": "sub-flow must not declare an error path; wrap the blocks in handle-errors",
}


class _SubFlow(_BlockList):
    """A flow in a slot: `{name?, process}` (dialect 1.6)."""

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "object", "format": "subFlow"}

    def shape(self, value: Any) -> Branch:
        if not isinstance(value, dict):
            raise PydanticCustomError(
                "subflow", "expected a sub-flow; write the blocks as a list under `process:`", {}
            )
        for key in value:
            if key in _ROOT_ONLY:
                raise PydanticCustomError("subflow", "{text}", {"text": _ROOT_ONLY[key]})
            if key not in ("name", "process"):
                raise PydanticCustomError(
                    "subflow",
                    "unknown key {key}; a sub-flow has name and process",
                    {"key": repr(str(key))},
                )
        name = value.get("name")
        return Branch(super().shape(value.get("process") or []).blocks, str(name or ""))


Blocks = Annotated[Branch, _BlockList()]
"""A chain written as a bare list of blocks."""

SubFlow = Annotated[Branch, _SubFlow()]
"""A chain written as `{process: [...]}`."""


class _Plain:
    """JSON data as it stands in the file, without places."""

    def __get_pydantic_core_schema__(self, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(plain)

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {}


Plain = Annotated[Any, _Plain()]
"""Any JSON value, written natively in YAML."""

__all__ = [
    "Blocks",
    "Branch",
    "Duration",
    "Expr",
    "Plain",
    "SubFlow",
    "Table",
    "expr_over",
    "parse_duration",
]
