"""Breakpoints, spies and mocks: a rewrite of the built tree (dialect 7.2 and 7.4).

A service that is not debugged never comes here. One that is has the block at an address replaced
by a wrapper, breakpoint around spy around mock, so that no other part knows of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from flowrt.engine.address import AddressBook, Place
from flowrt.engine.block import AnyBlock, Block, Settings
from flowrt.engine.chain import Chain
from flowrt.engine.fields import Expr, Plain
from flowrt.engine.run import Run
from flowrt.errors import FlowError
from flowrt.expr import Expression, Scope
from flowrt.message import Message, clean


class MockOutcome(Settings):
    """What a mocked block does: exactly one of `body`, `error` and `drop`. All are literals."""

    body: Plain = Field(default=None, description="The body the message leaves with.")
    vars: dict[str, Plain] = Field(
        default_factory=dict, description="Variables set beside the body."
    )
    error: str | None = Field(default=None, description="The block fails with this text.")
    drop: bool = Field(default=False, description="The block drops the message.")

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = self.model_fields_set & {"body", "error", "drop"}
        if len(given) != 1:
            found = "none of them" if not given else ", ".join(sorted(given))
            raise PydanticCustomError(
                "outcome",
                "a mock needs exactly one of body, error and drop, found {found}",
                {"found": found},
            )
        if "drop" in given and not self.drop:
            raise PydanticCustomError("outcome", "drop can only be true")
        if "vars" in self.model_fields_set and "body" not in given:
            raise PydanticCustomError("outcome", "vars goes only with body")
        return self


class MockCase(MockOutcome):
    """An outcome for the messages that `when` holds for."""

    when: Expr = Field(description="A condition over the message the block received.")


class MockSettings(Settings):
    """What stands in for a block and everything in it."""

    cases: list[MockCase] = Field(default_factory=list, description="The first that holds is used.")
    default: MockOutcome | None = Field(
        default=None, description="Used where no case holds; without it, the block fails."
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.cases and self.default is None:
            raise PydanticCustomError("empty", "a mock needs cases, a default or both")
        return self


@dataclass(frozen=True, slots=True)
class DebugPlan:
    """What to watch and replace, by address."""

    break_at: str | None = None
    spies: Sequence[str] = ()
    mocks: dict[str, MockSettings] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.break_at or self.spies or self.mocks)


@dataclass(slots=True)
class Crossing:
    """A message that passed a spied block. `output` is None where it was dropped or failed."""

    seq: int
    at: datetime
    input: dict[str, Any]
    output: dict[str, Any] | None = None
    dropped: bool = False
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """The form of the envelope."""
        out: dict[str, Any] = {"seq": self.seq, "at": self.at.isoformat(), "input": self.input}
        if self.error:
            out["error"] = self.error
        elif self.dropped:
            out["dropped"] = True
        else:
            out["output"] = self.output
        return out


class Probe:
    """What the wrappers of one service saw.

    `crossings` are by the spy's address as it was asked for. `reached` is the message behind the
    breakpoint, None where no message came by.
    """

    def __init__(self, plan: DebugPlan) -> None:
        self.plan = plan
        self.crossings: dict[str, list[Crossing]] = {address: [] for address in plan.spies}
        self.reached: dict[str, Any] | None = None
        self._numbers = itertools.count(1)

    def cross(self, address: str, message: Message, at: datetime) -> Crossing:
        """Note that a message enters the block at `address`."""
        crossing = Crossing(next(self._numbers), at, snapshot(message))
        self.crossings[address].append(crossing)
        return crossing

    def envelope(self) -> dict[str, Any]:
        """What was seen, as `invoke --envelope` prints it beside the outcome."""
        out: dict[str, Any] = {}
        if self.plan.break_at:
            out |= {"reached": self.reached is not None, "block": self.plan.break_at}
            if self.reached is not None:
                out["message"] = self.reached
        if self.plan.spies:
            out["spies"] = [
                {"address": address, "records": [each.to_json() for each in crossings]}
                for address, crossings in self.crossings.items()
            ]
        return out


def instrument(chains: Sequence[Chain], plan: DebugPlan, scope: Scope) -> Probe:
    """Put the plan's wrappers into the chains of a built service.

    Raises `CallError` for an address that does not resolve, before anything is changed.
    """
    book = AddressBook(chains)
    probe = Probe(plan)
    wanted = dict.fromkeys([*plan.mocks, *plan.spies, *([plan.break_at] if plan.break_at else [])])
    places = {address: book.find(address) for address in wanted}
    for address, settings in plan.mocks.items():
        _replace(places[address], _Mock(address, settings, scope))
    for address in plan.spies:
        place = places[address]
        _replace(place, _Spy(place.step.block, address, probe))
    if plan.break_at:
        place = places[plan.break_at]
        _replace(place, _Breakpoint(place.step.block, probe))
    return probe


def _replace(place: Place, block: AnyBlock) -> None:
    steps = list(place.chain.steps)
    steps[place.index] = place.step._replace(block=block)
    place.chain.steps = tuple(steps)


def snapshot(message: Message) -> dict[str, Any]:
    """The message as it is now. Bodies and values are only ever replaced, so they are shared."""
    taken = message.to_json()
    taken["variables"] = dict(message.vars)
    return taken


class _Mock(Block[Any]):
    def __init__(self, address: str, settings: MockSettings, scope: Scope) -> None:
        self._address = address
        self._default = settings.default
        # Compiled anew: these see the service's `env`.
        self._cases = [
            (Expression.compile(case.when.source, case.when.position, scope), case)
            for case in settings.cases
        ]

    async def run(self, message: Message, run: Run) -> Message | None:
        outcome = self._outcome(message)
        if outcome.error is not None:
            raise FlowError(outcome.error)
        if outcome.drop:
            return None
        message.body = clean(outcome.body)
        message.raw = False
        message.update(clean(outcome.vars))
        return message

    def _outcome(self, message: Message) -> MockOutcome:
        for when, case in self._cases:
            if when.test(message):
                return case
        if self._default is None:
            raise FlowError(
                f"the mock of {self._address!r} has no case for this message and no default"
            )
        return self._default


class _Spy(Block[Any]):
    def __init__(self, block: AnyBlock, address: str, probe: Probe) -> None:
        self._block = block
        self._address = address
        self._probe = probe

    async def run(self, message: Message, run: Run) -> Message | None:
        crossing = self._probe.cross(self._address, message, run.clock.now())
        try:
            result = await self._block.run(message, run)
        except Exception as error:
            crossing.error = str(error) or type(error).__name__
            raise
        if result is None:
            crossing.dropped = True
        else:
            crossing.output = snapshot(result)
        return result


class _Breakpoint(Block[Any]):
    """Stops the flow the way a block does: every enclosing chain ends, and nothing recovers it."""

    def __init__(self, block: AnyBlock, probe: Probe) -> None:
        self._block = block
        self._probe = probe

    async def run(self, message: Message, run: Run) -> Message | None:
        result = await self._block.run(message, run)
        if result is not None:
            if self._probe.reached is None:
                self._probe.reached = snapshot(result)
            result.stop = True
        return result
