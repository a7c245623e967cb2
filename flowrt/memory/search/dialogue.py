"""What a turn gains from the turns around it, and from who said it.

Somebody who looks for an answer asks with the words of the question, and what a conversation was
about is seldom said in one turn. So each turn passes a part of its score to its neighbours.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from flowrt.memory.search.tokens import terms

QUESTION = 0.6
"""What a question passes to the turn behind it, of its score."""

SHARE, FADE, REACH = 0.3, 0.7, 4
"""What any turn passes to the next and to the one before; how that shrinks a turn; how far."""

NAMED = 2.0
"""What a turn gains, in standard deviations of the scores, when the question names who said it."""

PAUSE = 6 * 3600.0
"""Seconds of silence after which a thread begins a new conversation."""

_NONE = -1
_ASKS = "?？؟"


class Dialogue:
    """Which turn follows which, and who says it, for turns numbered as in the index of words."""

    def __init__(self) -> None:
        self._before = array("i")
        self._behind = array("i")
        self._asks = bytearray()
        self._speakers = array("H")
        self._names: dict[str, int] = {"": 0}
        self._terms: dict[str, int] = {}
        self._last: dict[str, tuple[int, float]] = {}

    def add_turn(self, thread: str, text: str, at: float, speaker: str) -> None:
        """The next number is a turn, said in `thread` behind those that were added for it."""
        number = len(self._before)
        before, since = self._last.get(thread, (_NONE, at))
        if before != _NONE and at - since > PAUSE:
            before = _NONE
        if before != _NONE:
            self._behind[before] = number
        self._last[thread] = (number, at)
        self._add(before, any(mark in text for mark in _ASKS), self._speaker(speaker))

    def add_other(self) -> None:
        """The next number is nothing that was said: it has no neighbours."""
        self._add(_NONE, False, 0)

    def _add(self, before: int, asks: bool, speaker: int) -> None:
        self._before.append(before)
        self._behind.append(_NONE)
        self._asks.append(asks)
        self._speakers.append(speaker)

    def _speaker(self, name: str) -> int:
        found = self._names.get(name)
        if found is None:
            if len(self._names) > 65_535:
                return 0
            found = self._names[name] = len(self._names)
            for term in terms(name):
                self._terms[term] = found if term not in self._terms else 0
        return found

    def named(self, wanted: list[str]) -> tuple[int, list[str]]:
        """The speaker whom a question names, 0 for nobody or several, and what else it asks for.

        Whom somebody talks about is mostly not whose name he says, so the names are left out.
        """
        named = {self._terms[term] for term in wanted if term in self._terms}
        rest = [term for term in wanted if term not in self._terms]
        return (named.pop() if len(named) == 1 else 0, rest or wanted)

    def share(self, scores: Mapping[int, float], speaker: int) -> dict[int, float]:
        """The scores with what each turn is given by its neighbours and for its speaker."""
        given = dict(scores)
        for number, score in scores.items():
            if score <= 0:
                continue
            first = QUESTION if self._asks[number] else SHARE
            _pass_on(given, self._behind, number, score, first)
            _pass_on(given, self._before, number, score, SHARE)
        if speaker:
            for number in given:
                if self._speakers[number] == speaker:
                    given[number] += NAMED
        return given


def _pass_on(
    given: dict[int, float], to: array[int], number: int, score: float, first: float
) -> None:
    part = SHARE
    for step in range(REACH):
        number = to[number]
        if number == _NONE:
            return
        given[number] = given.get(number, 0.0) + score * (part if step else first)
        part *= FADE
