"""`flowrt invoke`: one message through a flow."""

from __future__ import annotations

import asyncio
import json
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from flowrt.cli.arguments import lines, read_data, read_object, read_text, seconds
from flowrt.cli.exits import DONE, FAILED, say
from flowrt.clock import SystemClock
from flowrt.errors import FlowError
from flowrt.message import Outcome
from flowrt.observe.masking import mask
from flowrt.observe.trace import Trace
from flowrt.service import GRACE, Result, Service

if TYPE_CHECKING:
    from flowrt.engine.debug import Probe


class Invocation(NamedTuple):
    """The options of `flowrt invoke`, as given."""

    config: str
    flow: str | None
    data: str | None
    variables: str | None
    content_type: str | None
    storage: str | None
    env_file: str | None
    timeout: str
    message: bool
    events: str | None
    traces: str | None
    break_at: str | None
    spies: str | None
    mocks: str | None
    debug_config: str | None
    envelope: bool
    envelope_out: str | None

    @property
    def debugs(self) -> bool:
        return any((self.break_at, self.spies, self.mocks, self.debug_config))


class Call(NamedTuple):
    """What is sent through the flow."""

    flow: str | None
    data: Any
    variables: dict[str, Any]
    raw: bool = False


def invoke_command(options: Invocation) -> int:
    """Run it and print the result. The exit code: 0 done or dropped, 1 the flow failed."""
    service = Service.load(options.config, storage=options.storage, env_file=options.env_file)
    call, probe = _prepare(service, options)
    timeout = seconds(options.timeout, "--timeout")
    with (
        lines(options.events, "--events") as events,
        lines(options.traces, "--traces") as traces,
        lines(options.envelope_out, "--envelope-out") as envelopes,
    ):
        watcher = EventFile(events) if events else None
        trace = Trace(lambda line: print(line, file=traces), SystemClock()) if traces else None
        result = asyncio.run(_invoke(service, call, timeout, watcher, trace))
        if probe is None and not options.envelope and envelopes is None:
            return _print(result, whole=options.message)
        return _print_envelope(result, probe, options, envelopes)


def _prepare(service: Service, options: Invocation) -> tuple[Call, Probe | None]:
    """The message to send, and what watches it where anything does."""
    if not options.debugs:
        return _call(options), None
    from flowrt.cli.debugging import debug_plan, read_debug_config

    config = read_debug_config(options.debug_config)
    plan = debug_plan(config, options.break_at, options.spies, options.mocks)
    probe = service.debug(plan)
    if config.input is None or options.data is not None or options.variables is not None:
        return _call(options), probe
    return Call(options.flow, config.input.data, config.input.vars), probe


def _call(options: Invocation) -> Call:
    variables = read_object(options.variables, "--vars")
    if options.content_type is None:
        return Call(options.flow, read_data(options.data), variables)
    text = read_text(options.data)
    body = {"contentType": options.content_type, "rawData": text or ""}
    return Call(options.flow, body, variables, raw=True)


class EventFile:
    """Writes agent events as JSON lines, secrets masked."""

    delta: None = None

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def event(self, event: dict[str, Any]) -> None:
        print(json.dumps(mask(event), ensure_ascii=False), file=self._file, flush=True)


async def _invoke(
    service: Service,
    call: Call,
    timeout: float | None,  # noqa: ASYNC109 - the whole run's, told to the user by name
    watcher: EventFile | None,
    trace: Trace | None,
) -> Result:
    began = asyncio.get_running_loop().time()
    await service.start()
    try:
        async with asyncio.timeout(timeout):
            return await service.invoke(
                call.flow, call.data, call.variables, raw=call.raw, watcher=watcher, trace=trace
            )
    except TimeoutError:
        error = FlowError(f"the flow took longer than --timeout {timeout:g}s")
        return Result(Outcome.FAILED, error=error)
    finally:
        # A split has answered long before its elements are done: they have the same time as it.
        spent = asyncio.get_running_loop().time() - began
        await service.stop(grace=None if timeout is None else max(GRACE, timeout - spent))


def _print(result: Result, *, whole: bool) -> int:
    if result.error is not None:
        say(str(result.error))
        return FAILED
    if result.message is None:
        # An empty terminal says nothing of why it is empty.
        say("the message was dropped")
        return DONE
    out = result.message.to_json() if whole else result.message.body
    print(json.dumps(out, ensure_ascii=False, allow_nan=False))
    return DONE


def _print_envelope(
    result: Result, probe: Probe | None, options: Invocation, file: IO[str] | None
) -> int:
    """Print what was seen: always where there is a breakpoint or a spy, else where asked to."""
    from flowrt.cli.debugging import envelope

    told = json.dumps(
        envelope(result, probe.envelope() if probe is not None else {}),
        ensure_ascii=False,
        allow_nan=False,
    )
    if file is not None:
        print(told, file=file)
    watches = probe is not None and (probe.plan.break_at or probe.plan.spies)
    if not options.envelope and not watches:
        return _print(result, whole=options.message)
    if file is None:
        print(told)
    return DONE
