"""`flowrt memory show --at SEQ`: the request that a model saw at one turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from flowrt.agent.replay import Replayed, replay
from flowrt.cli.memory.conversation import Conversation
from flowrt.cli.memory.opened import Remembered
from flowrt.cli.memory.screen import counted, inline, moment
from flowrt.errors import CallError
from flowrt.memory.agent_memory import StoredAgentMemory
from flowrt.memory.entry import Entry
from flowrt.memory.summary import flatten
from flowrt.storage.agents.protocol import Place, Turn

_ASIDE = ("system", "tools", "messages")


async def replay_at(memory: Remembered, conversation: Conversation, seq: int) -> Replayed:
    """The request at a turn. Raises `CallError` where there is no such turn."""
    found = conversation.found
    turn = next((turn for turn in conversation.turns if turn.seq == seq), None)
    if turn is None or found.agent is None:
        has = counted(len(conversation.turns), "turn")
        raise CallError(f"--at {seq}: the record of {found.thread!r} has {has}")
    place = Place(memory.service, found.agent, found.thread)
    volatile = found.tier.name == "volatile"
    of_tier = StoredAgentMemory(memory.storage, volatile=volatile)
    facts = StoredAgentMemory(memory.storage)
    return await replay(of_tier, facts, place, turn, context={})


def at_json(conversation: Conversation, seq: int, replayed: Replayed) -> dict[str, Any]:
    """What `--json` prints."""
    turn = _turn(conversation, seq)
    return {
        "thread": conversation.found.thread,
        "agent": conversation.found.agent,
        "seq": seq,
        "at": turn.at,
        "turn": {"role": turn.role, "text": turn.text},
        "exact": replayed.exact,
        "request": replayed.request,
        "unknown": replayed.unknown,
        "lacking": replayed.lacking,
        "call": replayed.call,
        "calls": replayed.calls,
        "connector": replayed.connector,
    }


def at_lines(conversation: Conversation, seq: int, replayed: Replayed) -> Iterator[str]:
    """What is printed for people."""
    turn = _turn(conversation, seq)
    yield f"turn {seq}, {moment(turn.at)}, {turn.role}: {inline(turn.text)}"
    yield ""
    request = replayed.request
    if request is None:
        before = [each for each in conversation.turns if each.seq < seq]
        yield f"the request is not known: {replayed.unknown}"
        yield f"the record before it: {counted(len(before), 'turn')}"
        yield from (f"{each.seq:5}  {each.role}: {inline(each.text)}" for each in before)
        return
    kind = "the exact request" if replayed.exact else "the request, as far as it is known"
    of = f", model call {replayed.call} of {replayed.calls} of its exchange"
    yield kind + (of if replayed.calls > 1 else "")
    for lacks in replayed.lacking:
        yield f"  without {lacks}"
    through = f" through connector {replayed.connector!r}" if replayed.connector else ""
    parameters = {name: value for name, value in request.items() if name not in _ASIDE}
    yield f"parameters{through}: {inline(json.dumps(parameters, ensure_ascii=False))}"
    for block in request.get("system", []):
        yield f"system: {inline(block['text'])}"
    names = ", ".join(tool["name"] for tool in request.get("tools", []))
    yield f"tools: {inline(names) or 'none'}"
    yield f"messages: {len(request['messages'])}"
    for message in request["messages"]:
        yield f"       {inline(flatten(Entry(message)))}"


def _turn(conversation: Conversation, seq: int) -> Turn:
    return next(turn for turn in conversation.turns if turn.seq == seq)
