"""What a conversation is called."""

from __future__ import annotations

from typing import Any

from flowrt.agent.conversation import Conversation
from flowrt.agent.spec import AgentSpec
from flowrt.engine.run import Run
from flowrt.errors import BlockError
from flowrt.message import Message
from flowrt.observe.log import get_logger

LONGEST = 80
"""Characters of a title."""

_log = get_logger("flowrt.agent.memory")


async def title_of(
    spec: AgentSpec,
    conversation: Conversation,
    question: str,
    answer: str,
    message: Message,
    run: Run,
) -> str:
    """The title for a conversation that this exchange opened; "" leaves it without one.

    The `nameThread` chain gives it, on a message of its own; where there is none, it fails or
    there is no answer yet, it is the first line of the question.
    """
    memory = spec.memory
    chain = memory.remember.name_thread if memory and memory.remember else None
    if chain is None or not answer.strip():
        return _shortened(question)
    place = conversation.place
    body = {
        "threadKey": place.thread,
        "agentId": place.agent,
        "userId": place.user,
        "question": question,
        "answer": answer,
    }
    own = Message(body, message.vars, correlation_id=message.correlation_id)
    own.trace_id = message.trace_id
    try:
        named = await chain.run(own, run)
    except BlockError as error:
        _log.warning(
            "nameThread failed; the conversation is called by its question",
            block=spec.label,
            error=str(error),
        )
        return _shortened(question)
    return "" if named is None else _shortened(_named(named.body))


def _named(body: Any) -> str:
    if isinstance(body, dict):
        # An agent or a mapping in the chain answers in JSON.
        body = body.get("title") or body.get("name")
    return body if isinstance(body, str) else ""


def _shortened(text: str) -> str:
    lines = text.strip().splitlines()
    line = " ".join(lines[0].split()) if lines else ""
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rstrip() + "…"
