"""Compaction: which entries stay when a prompt would exceed its budget.

Pure planning: nothing here calls a model or a store. Cuts fall between exchanges; inside the
newest exchange, between tool rounds, the oldest first. The opening of the newest exchange (the
current question) and its latest round are never cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from flowrt.memory.entry import Entry, exchanges, rounds, tokens_of
from flowrt.memory.meter import Meter

Strategy = Literal["prune", "summarize"]

# A summary below this many estimated tokens of material would be as long as what it replaces.
LEAST_TO_SUMMARIZE = 200

# Earlier summaries are carried on word for word up to this share of what the overhead leaves; past
# it the oldest are folded into the next one. Summarising them each time loses a little each time
# until nothing is left of the first (FB-34).
SUMMARIES_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Budget:
    """`limit`: tokens of the whole prompt. `compact_to`: the share that a compaction cuts to."""

    limit: int
    compact_to: float

    @property
    def target(self) -> float:
        """The low-water mark, in tokens."""
        return self.limit * self.compact_to


@dataclass(frozen=True, slots=True)
class Split:
    """A transcript divided for a summary.

    `old` is told anew, the text of the summaries in `earlier` is carried on word for word in front
    of it, `recent` stays as it is.
    """

    earlier: list[Entry]
    old: list[Entry]
    recent: list[Entry]


def current_start(entries: Sequence[Entry]) -> int:
    """Where the newest exchange begins; 0 where no user turn opens one."""
    for index in range(len(entries) - 1, -1, -1):
        if entries[index].opens and entries[index].kind == "message":
            return index
    return 0


def prune(entries: list[Entry], meter: Meter, budget: Budget) -> list[Entry]:
    """The newest entries that fit the low-water mark.

    Whole exchanges go, oldest first, summaries last of all. Only where the newest exchange alone
    exceeds the budget do its tool rounds go, oldest first, down to the low-water mark; its opening
    and its latest round stay even where they do not fit.
    """
    start = current_start(entries)
    history, current = entries[:start], entries[start:]
    room = meter.room(budget.target)
    kept = _newest_that_fit(history, room - tokens_of(current))
    if kept or meter.predict(tokens_of(current)) <= budget.limit:
        return kept + current
    return drop_rounds(current, room)


def _newest_that_fit(history: list[Entry], room: float) -> list[Entry]:
    summaries = [entry for entry in history if entry.kind == "summary"]
    units = exchanges([entry for entry in history if entry.kind == "message"])
    kept: list[Entry] = []
    left = room
    for summary in reversed(summaries):
        if summary.tokens > left:
            break
        left -= summary.tokens
        kept.insert(0, summary)
    recent: list[Entry] = []
    for unit in reversed(units):
        size = tokens_of(unit)
        if size > left:
            break
        left -= size
        recent = unit + recent
    return kept + recent


def drop_rounds(current: list[Entry], room: float) -> list[Entry]:
    """An exchange without its oldest tool rounds, as far as `room` asks; the latest one stays."""
    opening, worked = current[:1], rounds(current[1:])
    size = tokens_of(current)
    while len(worked) > 1 and size > room:
        size -= tokens_of(worked.pop(0))
    return opening + [entry for unit in worked for entry in unit]


def split_for_summary(entries: list[Entry], meter: Meter, budget: Budget) -> Split | None:
    """What a summary would tell and what stays, or None where it could not shrink the prompt.

    The newest exchanges that fit half of what the overhead leaves stay as they are; so do earlier
    summaries up to their share. A lone summary is never summarised again (FB-32).
    """
    left = max(0.0, meter.room(budget.limit))
    start = current_start(entries)
    history, current = entries[:start], entries[start:]
    earlier, folded = _carried(history, left * SUMMARIES_SHARE)
    units = exchanges([entry for entry in history if entry.kind == "message"])
    half = min(left / 2, max(0.0, meter.room(budget.target)))
    size = tokens_of(current)
    recent: list[Entry] = []
    while units and size + tokens_of(units[-1]) <= half:
        unit = units.pop()
        size += tokens_of(unit)
        recent = unit + recent
    kept_current = current if size <= left else drop_rounds(current, half)
    told = [entry for unit in units for entry in unit]
    staying = {id(entry) for entry in kept_current}
    told += [entry for entry in current if id(entry) not in staying]
    if tokens_of(told) < LEAST_TO_SUMMARIZE:
        return None
    return Split(earlier, folded + told, recent + kept_current)


def _carried(history: list[Entry], room: float) -> tuple[list[Entry], list[Entry]]:
    """Earlier summaries that stay word for word, and those to fold into the next one."""
    summaries = [entry for entry in history if entry.kind == "summary"]
    kept: list[Entry] = []
    for summary in reversed(summaries):
        if summary.tokens > room:
            break
        room -= summary.tokens
        kept.insert(0, summary)
    return kept, summaries[: len(summaries) - len(kept)]
