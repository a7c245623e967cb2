"""What `invoke` is told to watch and replace: flags, and `--run-debug-config FILE`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from flowrt.config.faults import faults_from
from flowrt.config.yaml import load_yaml
from flowrt.engine.block import Settings
from flowrt.engine.debug import DebugPlan, MockSettings
from flowrt.engine.fields import Plain
from flowrt.errors import CallError, ConfigError
from flowrt.service import Result

_MOCKS = TypeAdapter(dict[str, MockSettings])


class DebugInput(Settings):
    """The message to send."""

    data: Plain = Field(default=None, description="The body.")
    vars: dict[str, Plain] = Field(default_factory=dict, description="The variables.")


class DebugConfig(Settings):
    """A debug config file. A flag replaces its section whole."""

    input: DebugInput | None = Field(default=None, description="The message to send.")
    break_at: str | None = Field(default=None, description="Stop behind the block at this address.")
    spies: list[str] = Field(default_factory=list, description="Blocks to record.")
    mocks: dict[str, MockSettings] = Field(
        default_factory=dict, description="What stands in for blocks, by address."
    )


def read_debug_config(path: str | None) -> DebugConfig:
    """The file, YAML or JSON; an empty one without a path. Raises `CallError`, `ConfigError`."""
    if path is None:
        return DebugConfig()
    try:
        table = load_yaml(Path(path).read_bytes(), path)
    except OSError as error:
        raise CallError(f"--run-debug-config: cannot read {path!r}: {error.strerror}") from error
    try:
        return DebugConfig.model_validate(table)
    except ValidationError as error:
        raise ConfigError(faults_from(error, table, DebugConfig)) from error


def debug_plan(
    config: DebugConfig, break_at: str | None, spies: str | None, mocks: str | None
) -> DebugPlan:
    """The flags over the file's sections. `spies` are separated by commas, `mocks` are JSON."""
    listed = [part.strip() for part in spies.split(",")] if spies else config.spies
    return DebugPlan(
        break_at=break_at or config.break_at,
        spies=[address for address in listed if address],
        mocks=config.mocks if mocks is None else _mocks(mocks),
    )


def _mocks(text: str) -> dict[str, MockSettings]:
    try:
        return _MOCKS.validate_python(json.loads(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise CallError(f"--mocks: {place or 'it'}: {first['msg']}") from error
    except ValueError as error:
        raise CallError(f"--mocks is not valid JSON: {error}") from error


def envelope(result: Result, seen: dict[str, Any]) -> dict[str, Any]:
    """One object that tells how the flow ended and what was seen on the way (dialect 7.2)."""
    if result.error is not None:
        return {"error": str(result.error)} | seen
    if result.message is None:
        return {"dropped": True} | seen
    # Behind a breakpoint the flow was made to end: what it returned is only the snapshot again.
    return seen if seen.get("reached") else {"result": result.message.to_json()} | seen
