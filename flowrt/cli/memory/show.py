"""`flowrt memory show`: one conversation, as recorded and as the model is shown it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from flowrt.agent.replay import Replayed
from flowrt.cli.exits import DONE, FAILED, say
from flowrt.cli.memory.conversation import Conversation, read_conversation
from flowrt.cli.memory.facts import fact_json, source
from flowrt.cli.memory.opened import Asked, Remembered, find_thread, run_on
from flowrt.cli.memory.screen import counted, inline, moment, print_json, print_lines
from flowrt.cli.memory.show_at import at_json, at_lines, replay_at
from flowrt.memory.summary import flatten


def show_command(asked: Asked, thread: str, agent: str | None, at: int | None) -> int:
    """Print a thread, or the request at one of its turns; `FAILED` where there is none."""
    read = run_on(asked, lambda memory: _read(memory, thread, agent, at))
    if read is None:
        if asked.as_json:
            print_json(None)
        say(f"there is no thread {thread!r}; `flowrt memory threads` lists those that are stored")
        return FAILED
    conversation, replayed = read
    if at is not None and replayed is not None:
        shown, lines = at_json(conversation, at, replayed), at_lines(conversation, at, replayed)
    else:
        shown, lines = _json(conversation), _lines(conversation)
    if asked.as_json:
        print_json(shown)
    else:
        print_lines(lines)
    return DONE


async def _read(
    memory: Remembered, thread: str, agent: str | None, at: int | None
) -> tuple[Conversation, Replayed | None] | None:
    found = await find_thread(memory, thread, agent)
    if found is None:
        return None
    conversation = await read_conversation(memory, found)
    return conversation, None if at is None else await replay_at(memory, conversation, at)


def _json(conversation: Conversation) -> dict[str, Any]:
    found, info = conversation.found, conversation.info
    turns = [
        {**asdict(turn), "inContext": turn.seq in conversation.held} for turn in conversation.turns
    ]
    messages = [{**entry.message, "kind": entry.kind} for entry in conversation.entries]
    return {
        "thread": found.thread,
        "tier": found.tier.name,
        "agent": found.agent,
        "user": info.user if info else "",
        "title": info.title if info else "",
        "created": info.created if info else None,
        "active": info.active if info else None,
        "record": turns,
        "working": {
            "messages": messages,
            "rewritten": conversation.rewritten,
            "compactions": conversation.compactions,
        },
        "facts": [fact_json(fact, found.agent or "") for fact in conversation.facts],
    }


def _lines(conversation: Conversation) -> Iterator[str]:
    if conversation.found.agent is None:
        yield from map(flatten, conversation.entries)
        return
    yield from _heading(conversation)
    yield ""
    held, total = len(conversation.held), len(conversation.turns)
    yield f"record: {counted(total, 'turn')}, {held} of them word for word in the working context"
    for turn in conversation.turns:
        mark = " " if turn.seq in conversation.held else "-"
        unanswered = " (unanswered)" if turn.attrs.get("unanswered") else ""
        yield f"{mark}{turn.seq:4}  {moment(turn.at)}  {turn.role}{unanswered}: {inline(turn.text)}"
    if held < total:
        yield "   - the working context does not hold it; the record does"
    yield ""
    yield f"working context: {counted(len(conversation.entries), 'message')}{_cuts(conversation)}"
    for entry in conversation.entries:
        yield f"      {inline(flatten(entry))}"
    if conversation.facts:
        yield ""
        yield f"facts: {len(conversation.facts)}"
    for fact in conversation.facts:
        where = f"{source(fact.thread, fact.seq)}, {moment(fact.updated)}"
        yield f"      {inline(fact.name)} = {inline(fact.value)} ({where})"


def _heading(conversation: Conversation) -> Iterator[str]:
    found, info = conversation.found, conversation.info
    yield f"thread {inline(found.thread)} of agent {inline(found.agent or '')}, {found.tier.name}"
    if info is not None:
        yield f"user {inline(info.user)}" if info.user else "nobody's"
        if info.title:
            yield f"title {inline(info.title)}"
        yield f"created {moment(info.created)}, last active {moment(info.active)}"


def _cuts(conversation: Conversation) -> str:
    cuts = conversation.compactions
    if cuts:
        each = ", ".join(f"{moment(cut['at'])} (of {cut['entries']} messages)" for cut in cuts)
        return f"; compacted {each}"
    if conversation.rewritten:
        return f"; written anew {counted(conversation.rewritten, 'time')}, when is not known"
    return ""
