"""`flowrt invoke`: one message through a flow."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from pydantic_core import PydanticCustomError

from flowrt.cli.arguments import read_data, read_object
from flowrt.cli.exits import DONE, FAILED, say
from flowrt.clock import SystemClock
from flowrt.engine.fields import parse_duration
from flowrt.errors import CallError, FlowError
from flowrt.message import Outcome
from flowrt.observe.masking import mask
from flowrt.observe.trace import Trace
from flowrt.service import Result, Service


class Invocation(NamedTuple):
    """The options of `flowrt invoke`, as given."""

    config: str
    flow: str | None
    data: str | None
    variables: str | None
    storage: str | None
    env_file: str | None
    timeout: str
    message: bool
    events: str | None
    traces: str | None


def invoke_command(options: Invocation) -> int:
    """Run it and print the result. The exit code: 0 done or dropped, 1 the flow failed."""
    service = Service.load(options.config, storage=options.storage, env_file=options.env_file)
    data = read_data(options.data)
    variables = read_object(options.variables, "--vars")
    timeout = _seconds(options.timeout)
    with _lines(options.events, "--events") as events, _lines(options.traces, "--traces") as traces:
        watcher = EventFile(events) if events else None
        trace = Trace(lambda line: print(line, file=traces), SystemClock()) if traces else None
        result = asyncio.run(
            _invoke(service, options.flow, data, variables, timeout, watcher, trace)
        )
    return _print(result, whole=options.message)


class EventFile:
    """Writes agent events as JSON lines, secrets masked."""

    delta: None = None

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def event(self, event: dict[str, Any]) -> None:
        print(json.dumps(mask(event), ensure_ascii=False), file=self._file, flush=True)


async def _invoke(
    service: Service,
    flow: str | None,
    data: Any,
    variables: dict[str, Any],
    timeout: float | None,  # noqa: ASYNC109 - the whole run's, told to the user by name
    watcher: EventFile | None,
    trace: Trace | None,
) -> Result:
    async with service:
        try:
            async with asyncio.timeout(timeout):
                return await service.invoke(flow, data, variables, watcher=watcher, trace=trace)
        except TimeoutError:
            error = FlowError(f"the flow took longer than --timeout {timeout:g}s")
            return Result(Outcome.FAILED, error=error)


def _print(result: Result, *, whole: bool) -> int:
    if result.error is not None:
        say(str(result.error))
        return FAILED
    if result.message is None:
        return DONE
    out = result.message.to_json() if whole else result.message.body
    print(json.dumps(out, ensure_ascii=False, allow_nan=False))
    return DONE


def _seconds(text: str) -> float | None:
    try:
        return parse_duration(text) or None
    except PydanticCustomError as error:
        raise CallError(f"--timeout: {error}") from error


@contextlib.contextmanager
def _lines(path: str | None, option: str) -> Iterator[IO[str] | None]:
    """A file to write lines to, readable by its owner only; None where none is asked for."""
    if path is None:
        yield None
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise CallError(f"{option}: cannot write {path!r}: {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        yield file
