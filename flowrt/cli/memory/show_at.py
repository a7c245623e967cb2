"""`flowrt memory show --at SEQ`: what is kept of the request that a model saw at one turn.

Requests are not stored. What there is: the record up to the turn, the messages of the working
context where nothing has been cut from it since, and the facts with the times of their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowrt.cli.memory.conversation import Conversation
from flowrt.cli.memory.facts import source
from flowrt.cli.memory.screen import counted, inline, moment
from flowrt.memory.entry import Entry
from flowrt.memory.summary import flatten
from flowrt.storage.agents.protocol import Fact, Turn

NOT_KEPT = (
    "the system prompt, the tools and the model: they are those of the service file back then",
    "files that were shown once, without keepAttachments",
    "facts that were removed since",
)
"""What no store has of a request."""


def at_json(conversation: Conversation, seq: int) -> dict[str, Any]:
    """What `--json` prints."""
    turn = _turn(conversation, seq)
    messages, reason = _messages(conversation, turn)
    return {
        "thread": conversation.found.thread,
        "agent": conversation.found.agent,
        "seq": seq,
        "at": turn.at,
        "turn": {"role": turn.role, "text": turn.text},
        "messages": messages and [{**entry.message, "kind": entry.kind} for entry in messages],
        "messagesUnknown": reason,
        "record": [
            {"seq": each.seq, "role": each.role, "text": each.text}
            for each in conversation.turns
            if each.seq <= seq
        ],
        "facts": [
            {"name": name, "value": value, "thread": thread, "seq": from_seq, "at": at}
            for name, value, thread, from_seq, at in _facts(conversation, turn)
        ],
        "notKept": list(NOT_KEPT),
    }


def at_lines(conversation: Conversation, seq: int) -> Iterator[str]:
    """What is printed for people."""
    turn = _turn(conversation, seq)
    messages, reason = _messages(conversation, turn)
    yield f"turn {seq}, {moment(turn.at)}, {turn.role}: {inline(turn.text)}"
    yield ""
    if messages is None:
        before = [each for each in conversation.turns if each.seq < seq]
        yield f"the messages of the request are not kept: {reason}"
        yield f"the record before it: {counted(len(before), 'turn')}"
        yield from (f"{each.seq:5}  {each.role}: {inline(each.text)}" for each in before)
    else:
        yield f"the messages of the request: {len(messages)}"
        yield from (f"       {inline(flatten(entry))}" for entry in messages)
    facts = _facts(conversation, turn)
    if facts:
        yield ""
        yield f"facts at that time: {len(facts)}"
    for name, value, thread, from_seq, at in facts:
        yield f"       {inline(name)} = {inline(value)} ({source(thread, from_seq)}, {moment(at)})"
    yield ""
    yield "not kept anywhere:"
    yield from (f"       {what}" for what in NOT_KEPT)


def _turn(conversation: Conversation, seq: int) -> Turn:
    return next(turn for turn in conversation.turns if turn.seq == seq)


def _messages(conversation: Conversation, turn: Turn) -> tuple[list[Entry] | None, str]:
    """The messages up to a question, or up to what an answer answers; else why they are unknown."""
    at = conversation.held.get(turn.seq)
    if at is None:
        return None, "the working context does not hold the turn any more, or never did"
    cuts = conversation.compactions
    if len(cuts) < conversation.rewritten:
        return None, "the working context was written anew, and when is not known"
    if cuts and cuts[-1]["at"] >= turn.at:
        return None, f"the working context was compacted later, {moment(cuts[-1]['at'])}"
    return conversation.entries[: at + 1 if turn.role == "user" else at], ""


def _facts(conversation: Conversation, turn: Turn) -> list[tuple[str, str, str, int, float]]:
    """Each fact with the value it had at a turn; those that came later are left out."""
    values = (_value_at(fact, turn.at) for fact in conversation.facts)
    return [value for value in values if value is not None]


def _value_at(fact: Fact, at: float) -> tuple[str, str, str, int, float] | None:
    if fact.updated <= at:
        return fact.name, fact.value, fact.thread, fact.seq, fact.updated
    for was in reversed(fact.earlier):
        if was.at <= at:
            return fact.name, was.value, was.thread, was.seq, was.at
    return None
