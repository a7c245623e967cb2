"""What came of a case against what its file says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flowrt.engine.debug import Crossing
from flowrt.errors import ExpressionError
from flowrt.expr import Expression
from flowrt.expr.values import kind_of
from flowrt.message import Message, Outcome
from flowrt.service import Result
from flowrt.testing.suite.compare import Difference, differences, shown
from flowrt.testing.suite.model import (
    CrossingCheck,
    EventCheck,
    Expect,
    MessageCheck,
    RequestCheck,
    SpyCheck,
)


class CannotRun(Exception):
    """A case that says nothing either way: its file or its surroundings are wrong."""


class Failure(NamedTuple):
    """One thing that is not as the case says: where in one line, and the particulars."""

    summary: str
    detail: str = ""


def from_differences(found: Iterable[Difference]) -> list[Failure]:
    """A failure for each difference."""
    return [
        Failure(
            each.path,
            "\n".join(
                [
                    f"wanted  {each.wanted}",
                    f"got     {each.got}",
                    *([each.note] if each.note else []),
                ]
            ),
        )
        for each in found
    ]


def check_result(expect: Expect, result: Result, place: str) -> list[Failure]:
    """How the flow ended."""
    if expect.error is not None:
        return _check_error(expect.error, result, place)
    if result.error is not None:
        return [Failure(f"{place}: the flow failed", str(result.error))]
    if expect.dropped:
        if result.message is None:
            return []
        return [Failure(f"{place}.dropped", f"wanted  dropped\ngot     {_ended(result)}")]
    if result.message is None:
        return [Failure(f"{place}: the message was dropped", "wanted  a flow that completes")]
    return check_message(expect, result.message, place)


def _check_error(wanted: str, result: Result, place: str) -> list[Failure]:
    if result.error is None:
        got = _ended(result)
    elif wanted in str(result.error):
        return []
    else:
        got = shown(str(result.error))
    return [Failure(f"{place}.error", f"wanted  an error with {shown(wanted)}\ngot     {got}")]


def _ended(result: Result) -> str:
    if result.error is not None:
        return f"the error {shown(str(result.error))}"
    if result.outcome is Outcome.DROPPED or result.message is None:
        return "dropped"
    return f"completed with the body {shown(result.message.body)}"


def check_message(check: MessageCheck, message: Message, place: str) -> list[Failure]:
    """Body, variables and conditions of a message."""
    failures: list[Failure] = []
    if "body" in check.model_fields_set:
        failures += from_differences(differences(check.body, message.body, f"{place}.body"))
    for name, value in check.vars.items():
        path = f"{place}.vars.{name}"
        if name in message.vars:
            failures += from_differences(differences(value, message.vars[name], path))
        else:
            there = ", ".join(message.vars) or "there are none"
            failures.append(
                Failure(path, f"wanted  {shown(value)}\ngot     no such variable ({there})")
            )
    failures += check_that(check.that, message, {}, f"{place}.that")
    if failures and check.that and "body" not in check.model_fields_set:
        failures.append(Failure(f"{place}: the body was", shown(message.body)))
    return failures


def check_that(
    conditions: Sequence[Expression], message: Message, extra: Mapping[str, Any], place: str
) -> list[Failure]:
    """Conditions that must be true. Raises `CannotRun` for one that is neither true nor false."""
    failures = []
    for index, condition in enumerate(conditions):
        path = f"{place}[{index}]"
        try:
            value = condition.value(message, extra)
        except ExpressionError as error:
            failures.append(Failure(path, str(error)))
            continue
        if not isinstance(value, bool):
            raise CannotRun(
                f"{path}: {condition.source!r} is {kind_of(value)} and not true or false"
            )
        if not value:
            failures.append(Failure(path, f"wanted  {condition.source}\ngot     false"))
    return failures


def check_spy(check: SpyCheck, crossings: Sequence[Crossing], address: str) -> list[Failure]:
    """What passed a block."""
    place = f"spies.{address}"
    failures = _check_count(check.count, len(crossings), f"{place}.count")
    if len(check.records) > len(crossings):
        failures.append(
            Failure(
                f"{place}.records",
                f"wanted  {len(check.records)} or more\ngot     {len(crossings)}",
            )
        )
    for index, (record, crossing) in enumerate(zip(check.records, crossings, strict=False)):
        failures += _check_crossing(record, crossing, f"{place}.records[{index}]")
    return failures


def _check_count(wanted: int | None, got: int, place: str) -> list[Failure]:
    if wanted is None or wanted == got:
        return []
    return [Failure(place, f"wanted  {wanted}\ngot     {got}")]


def _check_crossing(check: CrossingCheck, crossing: Crossing, place: str) -> list[Failure]:
    failures = []
    if check.input is not None:
        failures += check_message(check.input, _message(crossing.input), f"{place}.input")
    if crossing.error:
        came = f"the error {shown(crossing.error)}"
    elif crossing.output is None:
        came = "dropped"
    else:
        came = f"the body {shown(crossing.output['body'])}"
    if check.output is not None:
        if crossing.output is not None:
            return failures + check_message(
                check.output, _message(crossing.output), f"{place}.output"
            )
        failures.append(Failure(f"{place}.output", f"wanted  an output\ngot     {came}"))
    if check.dropped and not crossing.dropped:
        failures.append(Failure(f"{place}.dropped", f"wanted  dropped\ngot     {came}"))
    if check.error is not None and check.error not in crossing.error:
        failures.append(
            Failure(f"{place}.error", f"wanted  an error with {shown(check.error)}\ngot     {came}")
        )
    return failures


def _message(snapshot: Mapping[str, Any]) -> Message:
    return Message(
        snapshot["body"],
        snapshot["variables"],
        correlation_id=snapshot.get("correlation_id", ""),
        event_id=snapshot["event_id"],
    )


def check_requests(
    checks: Sequence[RequestCheck], views: Sequence[dict[str, Any]], place: str
) -> list[Failure]:
    """What models were asked, in order; more may have followed."""
    failures: list[Failure] = []
    if len(checks) > len(views):
        failures.append(
            Failure(place, f"wanted  {len(checks)} requests or more\ngot     {len(views)}")
        )
    for index, (check, view) in enumerate(zip(checks, views, strict=False)):
        path = f"{place}[{index}]"
        if check.connector is not None and check.connector != view["connector"]:
            wanted, got = shown(check.connector), shown(view["connector"])
            failures.append(Failure(f"{path}.connector", f"wanted  {wanted}\ngot     {got}"))
        unmet = check_that(check.that, Message(), {"request": view}, f"{path}.that")
        if unmet:
            unmet.append(Failure(f"{path}: the request was", _request_text(view)))
        failures += unmet
    return failures


def _request_text(view: Mapping[str, Any]) -> str:
    """A request for the reader: its messages one a line, each cut where it is long."""
    tools = ", ".join(tool["name"] for tool in view["tools"]) or "none"
    lines = [f"tools {tools}; about {view['tokens']} tokens"]
    lines += [f"{each['role']:9} {shown(each['content'])}" for each in view["messages"]]
    return "\n".join(lines)


def check_events(
    checks: Mapping[str, EventCheck], events: Sequence[dict[str, Any]], place: str
) -> list[Failure]:
    """What agents told, by type."""
    failures: list[Failure] = []
    for kind, check in checks.items():
        of_kind = [event for event in events if event["type"] == kind]
        failures += _check_count(check.count, len(of_kind), f"{place}.{kind}.count")
        if len(check.records) > len(of_kind):
            wanted = f"wanted  {len(check.records)} or more\ngot     {len(of_kind)}"
            failures.append(Failure(f"{place}.{kind}.records", wanted))
        for index, (record, event) in enumerate(zip(check.records, of_kind, strict=False)):
            path = f"{place}.{kind}.records[{index}]"
            unmet = check_that(record.that, Message(), {"event": event}, f"{path}.that")
            if unmet:
                unmet.append(Failure(f"{path}: the event was", shown(event)))
            failures += unmet
    return failures
