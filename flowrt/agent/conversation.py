"""Where one run of an agent with an `agentId` remembers, and for whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flowrt.agent.spec import RememberSpec
from flowrt.engine.run import Run
from flowrt.errors import ExpressionError, FlowError
from flowrt.expr.values import kind_of
from flowrt.memory.agent_memory import AgentMemory
from flowrt.message import Message
from flowrt.observe.log import get_logger
from flowrt.storage.agents.protocol import Person, Place

_log = get_logger("flowrt.agent.memory")


@dataclass(frozen=True, slots=True)
class Conversation:
    """A thread in its memory, for the time of one run.

    `memory` is of the thread's tier, `facts` of the persistent one. `person` is None where the run
    knows no user. `context` is what `forwardContext` gave: it is in no text that is made of this.
    """

    memory: AgentMemory
    facts: AgentMemory
    place: Place
    person: Person | None
    context: Mapping[str, Any] = field(repr=False)

    @property
    def thread(self) -> Place:
        """The thread, whoever's it is."""
        return self.place._replace(user="")


def open_conversation(
    spec: RememberSpec, thread: str, volatile: bool, message: Message, run: Run, block: str
) -> Conversation:
    """Resolve whom the run is with and what goes along with its calls, from the inbound message.

    Raises `FlowError` where `forwardContext` fails or is no map.
    """
    context = _forwarded(spec, message)
    user = _user(spec, message, block)
    memories = run.runtime.memories
    place = Place(run.runtime.name, spec.agent, thread, user)
    return Conversation(
        memory=memories.of(volatile),
        facts=memories.of(),
        place=place,
        person=Person(place.service, place.agent, user) if user else None,
        context=context,
    )


def _forwarded(spec: RememberSpec, message: Message) -> Mapping[str, Any]:
    if spec.context is None:
        return {}
    try:
        value = spec.context.value(message)
    except ExpressionError as error:
        raise ExpressionError(f"ai-agent forwardContext: {error}", error.position) from error
    if not isinstance(value, dict):
        # The kind alone: the value may be a secret.
        raise FlowError(
            f"ai-agent forwardContext: {spec.context.position or ''} evaluates to a "
            f"{kind_of(value)}; it must be a map, since all of it goes along with every memory call"
        )
    return value


def _user(spec: RememberSpec, message: Message, block: str) -> str:
    """Who is on the other side; "" where nobody is named, or cannot be."""
    if spec.user is None:
        return ""
    try:
        return spec.user.key(message, "ai-agent userId")
    except ExpressionError as error:
        _log.warning(
            "nobody is named; the run has no user memory and its record belongs to nobody",
            block=block,
            error=str(error),
        )
        return ""
