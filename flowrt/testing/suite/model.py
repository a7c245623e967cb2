"""What a suite file may say. `flowrt schema --suite` and `schemas/suite.schema.json` are this."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from flowrt.agent.events import EVENT_TYPES
from flowrt.config.faults import nearest
from flowrt.config.nodes import plain
from flowrt.connectors.llm_scripted import condition
from flowrt.engine.block import Settings
from flowrt.engine.debug import MockSettings
from flowrt.engine.fields import Duration, Expr, Plain, expr_over
from flowrt.errors import ExpressionError
from flowrt.llm.scripted import ScriptedReply

DEFAULT_TIMEOUT = 30.0


def _compiles(when: str | None) -> str | None:
    try:
        condition(when)
    except ExpressionError as error:
        raise PydanticCustomError("expression", "{text}", {"text": str(error)}) from error
    return when


class ModelReply(ScriptedReply):
    """What a model stand-in answers once, or each time that `when` holds for the request."""

    when: Annotated[str | None, AfterValidator(_compiles)] = Field(
        default=None,
        description=(
            "A condition over `request` (system, messages, tools, lastUserText, text, tokens, "
            "purpose); "
            "such a reply may be used any number of times."
        ),
    )


Reply = Annotated[ModelReply, BeforeValidator(plain)]


class Input(Settings):
    """A message to send."""

    data: Plain = Field(default=None, description="The body.")
    vars: dict[str, Plain] = Field(default_factory=dict, description="The variables.")
    content_type: str | None = Field(
        default=None, description="Send `data`, a text, as raw content of this type."
    )

    @model_validator(mode="after")
    def _raw_is_text(self) -> Self:
        if self.content_type is not None and not isinstance(self.data, str):
            raise PydanticCustomError("raw", "with contentType, data must be a text")
        return self

    @property
    def body(self) -> Any:
        """The body that is sent."""
        if self.content_type is None:
            return self.data
        return {"contentType": self.content_type, "rawData": self.data}


class MessageCheck(Settings):
    """What a message must be like."""

    body: Plain = Field(default=None, description="The body, compared whole; numbers by value.")
    vars: dict[str, Plain] = Field(
        default_factory=dict, description="Variables it must have; others may be there."
    )
    that: list[Expr] = Field(
        default_factory=list, description="Conditions over body, vars, eventID, correlationID, now."
    )


def _scalar_text(value: Any) -> Any:
    """`PORT: 8080` is the text that a shell would set."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


EnvText = Annotated[
    str, BeforeValidator(_scalar_text, json_schema_input_type=str | int | float | bool)
]


def _excludes(model: MessageCheck, *outcomes: str) -> None:
    """`dropped` and `error` leave no message that could be looked at."""
    given = model.model_fields_set
    for outcome in outcomes:
        others = sorted(given - {outcome})
        if outcome in given and others:
            raise PydanticCustomError(
                "excludes",
                "{outcome} goes with nothing else, found {others} beside it",
                {"outcome": outcome, "others": ", ".join(others)},
            )
    if "dropped" in given and getattr(model, "dropped", None) is not True:
        raise PydanticCustomError("dropped", "dropped can only be true; leave it out otherwise")


class Expect(MessageCheck):
    """How a flow must end. Without it, it must complete."""

    dropped: bool = Field(default=False, description="The message was dropped.")
    error: str | None = Field(default=None, description="It failed with a text that contains this.")

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        _excludes(self, "dropped", "error")
        return self


class CrossingCheck(Settings):
    """One message that passed a block: as it went in, and how it came out."""

    input: MessageCheck | None = Field(default=None, description="As it went in.")
    output: MessageCheck | None = Field(default=None, description="As it came out.")
    dropped: bool = Field(default=False, description="The block dropped it.")
    error: str | None = Field(default=None, description="It failed with a text that contains this.")

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        given = sorted(self.model_fields_set & {"output", "dropped", "error"})
        if len(given) > 1:
            raise PydanticCustomError(
                "excludes", "only one of output, dropped and error can be, found {given}",
                {"given": ", ".join(given)},
            )  # fmt: skip
        if "dropped" in given and not self.dropped:
            raise PydanticCustomError("dropped", "dropped can only be true; leave it out otherwise")
        return self


class SpyCheck(Settings):
    """What must have passed a block."""

    count: int | None = Field(default=None, ge=0, description="How many messages, exactly.")
    records: list[CrossingCheck] = Field(
        default_factory=list, description="The first, the second, …; more may have come."
    )


class RequestCheck(Settings):
    """What a model must have been asked."""

    connector: str | None = Field(default=None, description="The connector that was asked.")
    that: list[expr_over("request")] = Field(  # type: ignore[valid-type]
        default_factory=list, description="Conditions over `request`."
    )


class EventRecord(Settings):
    """One event of an agent."""

    that: list[expr_over("event")] = Field(  # type: ignore[valid-type]
        min_length=1, description="Conditions over `event`."
    )


class EventCheck(Settings):
    """Events of one type that agents must have told."""

    count: int | None = Field(default=None, ge=0, description="How many, exactly.")
    records: list[EventRecord] = Field(
        default_factory=list, description="The first, the second, …; more may have come."
    )


class ThreadCheck(Settings):
    """A stored conversation, looked at when the case has ended."""

    volatile: bool = Field(default=False, description="It is in the volatile tier.")
    agent: str | None = Field(
        default=None, description="The `agentId`, for a conversation of a block that has one."
    )
    that: list[expr_over("transcript", "record")] = Field(  # type: ignore[valid-type]
        min_length=1,
        description=(
            "Conditions over `transcript`, a list of {role, content, text}: what the model is "
            "shown; with `agent` also over `record`: {user, title, turns: [{seq, role, text, "
            "attrs}]}, null where nothing is recorded."
        ),
    )


class FactsCheck(Settings):
    """What an agent must know about a user, looked at when the case has ended."""

    that: list[expr_over("facts")] = Field(  # type: ignore[valid-type]
        min_length=1, description="Conditions over `facts`, a map of names to values."
    )


class ObjectCheck(Settings):
    """A stored object, looked at when the case has ended."""

    volatile: bool = Field(default=False, description="It is in the volatile tier.")
    value: Plain = Field(default=None, description="What it must be.")
    absent: bool = Field(default=False, description="Nothing is stored under the key.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.absent == ("value" in self.model_fields_set):
            raise PydanticCustomError("one", "give either value, or absent: true")
        return self


class MemoryCheck(Settings):
    """What must be stored when the case has ended."""

    threads: dict[str, ThreadCheck] = Field(
        default_factory=dict, description="Conversations, by thread id."
    )
    facts: dict[str, dict[str, FactsCheck]] = Field(
        default_factory=dict, description="What agents know, by agentId and by user."
    )
    objects: dict[str, ObjectCheck] = Field(
        default_factory=dict, description="What object-write stored, by key."
    )


def _event_type(value: str) -> str:
    if value not in EVENT_TYPES:
        close = nearest(value, EVENT_TYPES)
        hint = (
            f"did you mean {close!r}?" if close else f"there are {', '.join(sorted(EVENT_TYPES))}"
        )
        raise PydanticCustomError(
            "event", "there is no event {found}; {hint}", {"found": repr(value), "hint": hint}
        )
    return value


class Meanwhile(Settings):
    """What happens while a turn waits: a message that is sent, or time that passes."""

    on: Annotated[str, AfterValidator(_event_type)] | None = Field(
        default=None,
        description=(
            "The event of the turn's agents at which it happens, such as tool_authorization; the "
            "next one of that type. Without it, right after the entry before."
        ),
    )
    after: Duration = Field(default=0.0, description="Time that passes first.")
    flow: str | None = Field(default=None, description="Another flow than the turn's.")
    data: expr_over("event", "events") | None = Field(  # type: ignore[valid-type]
        default=None,
        description=(
            "The body to send, as an expression over `event` and `events`, those of the turn up to "
            "it. Without it, only time passes."
        ),
    )
    expect: Expect = Field(default_factory=Expect, description="How the message's flow must end.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        given = self.model_fields_set
        if "data" not in given and given & {"flow", "expect"}:
            raise PydanticCustomError("data", "flow and expect are about the message: give data")
        if "data" not in given and "after" not in given:
            raise PydanticCustomError("data", "nothing happens: give data, or after")
        return self


class Turn(Settings):
    """One message of a case, and what must come of it."""

    flow: str | None = Field(default=None, description="Another flow than the suite's.")
    input: str | Input = Field(
        default_factory=Input, description="The message: the name of one under `inputs`, or itself."
    )
    now: AwareDatetime | None = Field(default=None, description="The time, from this turn on.")
    after: Duration = Field(default=0.0, description="Time that passes before this turn.")
    expect: Expect = Field(default_factory=Expect, description="How the flow must end.")
    requests: list[RequestCheck] = Field(
        default_factory=list, description="What models were asked, in order; more may follow."
    )
    events: dict[str, EventCheck] = Field(
        default_factory=dict, description="What agents told, by type of event."
    )
    meanwhile: list[Meanwhile] = Field(
        default_factory=list, description="What happens while it waits, one after the other."
    )

    @model_validator(mode="after")
    def _begins_at_an_event(self) -> Self:
        if self.meanwhile and self.meanwhile[0].on is None:
            raise PydanticCustomError("on", "the first entry of meanwhile needs on: its event")
        return self


_OF_A_TURN = ("input", "expect", "requests", "events", "meanwhile")


class Case(Turn):
    """One case: a message or several turns, in a world of its own."""

    name: str = Field(min_length=1, description="What it shows; unique in the file.")
    skip: str | None = Field(default=None, description="Do not run it, for this reason.")
    turns: list[Turn] = Field(
        default_factory=list,
        description="Several messages to one service, one after the other, instead of `input`.",
    )
    mocks: dict[str, MockSettings | None] = Field(
        default_factory=dict, description="Over the suite's, by address; null lifts one."
    )
    models: dict[str, list[Reply]] = Field(
        default_factory=dict, description="Over the suite's, by connector."
    )
    env: dict[str, EnvText] = Field(
        default_factory=dict, description="Over the suite's, by variable."
    )
    spies: dict[str, SpyCheck] = Field(
        default_factory=dict, description="What passed blocks, by address, in the whole case."
    )
    memory: MemoryCheck = Field(
        default_factory=MemoryCheck, description="What is stored at the end."
    )
    timeout: Duration | None = Field(default=None, description="Longest time of a message.")
    sources: bool | None = Field(default=None, description="Over the suite's.")

    @model_validator(mode="after")
    def _turns_or_input(self) -> Self:
        given = [key for key in _OF_A_TURN if key in self.model_fields_set]
        if self.turns and given:
            raise PydanticCustomError(
                "turns", "a case with turns has {given} in each turn, not beside them",
                {"given": " and ".join(given)},
            )  # fmt: skip
        return self

    def messages(self) -> list[Turn]:
        """The turns; a case without any is one itself."""
        return self.turns or [self]


class Suite(Settings):
    """A suite file: cases for the flows of the service beside it."""

    flow: str = Field(min_length=1, description="The flow that the cases call.")
    inputs: dict[str, Input] = Field(default_factory=dict, description="Messages by name.")
    mocks: dict[str, MockSettings] = Field(
        default_factory=dict, description="What stands in for blocks, by address."
    )
    models: dict[str, list[Reply]] = Field(
        default_factory=dict, description="What stands in for LLM connectors, by name."
    )
    env: dict[str, EnvText] = Field(default_factory=dict, description="Environment variables.")
    timeout: Duration = Field(default=DEFAULT_TIMEOUT, description="Longest time of a message.")
    now: AwareDatetime | None = Field(default=None, description="The time in every case.")
    sources: bool = Field(
        default=False,
        description="Also start `events` and `queue` sources, and background work of blocks.",
    )
    cases: list[Case] = Field(min_length=1, description="The cases.")
