"""A conversation as it is stored: what was said, and what the model is still shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from flowrt.agent.checkpoints import compactions_of
from flowrt.cli.memory.opened import Found, Remembered, all_facts, all_turns
from flowrt.errors import StoreError
from flowrt.memory.entry import Entry, calls_of
from flowrt.storage.agents.protocol import Fact, Person, Place, ThreadInfo, Turn
from flowrt.storage.protocol import Log


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is stored of a thread. `held` gives, for a turn's `seq`, its entry in the context."""

    found: Found
    info: ThreadInfo | None
    turns: list[Turn]
    entries: list[Entry]
    log: Log | None
    held: dict[int, int]
    facts: list[Fact]

    @property
    def compactions(self) -> list[dict[str, Any]]:
        """When the context was cut: {at, entries}, oldest first."""
        return compactions_of(self.log.head) if self.log else []

    @property
    def rewritten(self) -> int:
        """How often the context was written anew: by a compaction, or by two runs at once."""
        return self.log.generation - 1 if self.log else 0


async def read_conversation(memory: Remembered, found: Found) -> Conversation:
    """Read a thread whole. Raises `StoreError` for a context that does not parse."""
    log = await found.tier.space.read_log(found.key)
    try:
        entries = Entry.decode_all(log.entries) if log else []
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"the working context {found.key!r} cannot be read: {error!r}; "
            "`flowrt memory doctor` finds all of those"
        ) from error
    info, turns, facts = None, list[Turn](), list[Fact]()
    if found.agent is not None and found.tier.record is not None:
        place = Place(memory.service, found.agent, found.thread)
        info = await found.tier.record.thread(place)
        turns = [turn async for turn in all_turns(found.tier.record, place)]
        if info is not None and info.user:
            person = Person(memory.service, found.agent, info.user)
            facts = [fact async for fact in all_facts(memory.record, person)]
            facts = [await memory.record.fact(person, fact.name) or fact for fact in facts]
    return Conversation(found, info, turns, entries, log, _held(turns, entries), facts)


def _held(turns: Sequence[Turn], entries: Sequence[Entry]) -> dict[int, int]:
    """Which turns the context still has, word for word.

    Nothing stored ties the two together, so their texts do; from the end on, because a context
    loses its beginning and the same words may have been said twice.
    """
    spoken = [(at, said) for at, entry in enumerate(entries) if (said := _said(entry))]
    left = [(turn.role, turn.text.strip()) for turn in reversed(turns)]
    right = [said for _, said in reversed(spoken)]
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    return {
        turns[-1 - (block.a + step)].seq: spoken[-1 - (block.b + step)][0]
        for block in matcher.get_matching_blocks()
        for step in range(block.size)
    }


def _said(entry: Entry) -> tuple[str, str] | None:
    """Who says what in an entry; None for what is not on the record: calls, results, summaries."""
    role = entry.message["role"]
    if entry.kind != "message" or calls_of(entry.message):
        return None
    if role == "user" and not entry.opens:
        return None
    texts = [b["text"] for b in entry.message["content"] if b.get("type") == "text"]
    # As the record has them: a question's texts are lines, an answer's are one text.
    return role, ("\n" if role == "user" else "").join(texts).strip()
