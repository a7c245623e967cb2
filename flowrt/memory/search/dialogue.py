"""What a turn gains from the turns around it, and from who said it.

Somebody who looks for an answer asks with the words of the question, and what a conversation was
about is seldom said in one turn. So each turn passes a part of its score to its neighbours.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
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

_ASKS = "?？؟"


class Dialogue:
    """Which turn follows which, and who says it, for turns numbered as in the index of words."""

    def __init__(self) -> None:
        self.threads = array("I")
        self.asks = bytearray()
        self.begins = bytearray()
        self.speakers = array("H")
        self.names: list[str] = []
        self.speaker_names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._said: list[array[int]] = []
        self._last: dict[int, float] = {}
        self._speakers: dict[str, int] = {}
        self._terms: dict[str, int] = {}
        self.know_speaker("")

    def add_turn(self, thread: str, text: str, at: float, speaker: str) -> None:
        """The next number is a turn, said in `thread` behind those that were added for it."""
        known = self.know_thread(thread)
        self._said[known].append(len(self.threads))
        begins = at - self._last.get(known, at) > PAUSE
        self._last[known] = at
        asks = any(mark in text for mark in _ASKS)
        self._add(known, asks, begins, self.know_speaker(speaker))

    def add_other(self, thread: str) -> None:
        """The next number is nothing that was said: it comes from `thread`, without neighbours."""
        self._add(self.know_thread(thread), False, False, 0)

    def add_turns(
        self,
        threads: array[int],
        asks: bytes,
        begins: bytes,
        speakers: array[int],
        last: Mapping[int, float],
    ) -> None:
        """The next numbers are turns that are known already, with the times of the last ones."""
        for number, thread in enumerate(threads, len(self.threads)):
            self._said[thread].append(number)
        self.threads += threads
        self.asks += asks
        self.begins += begins
        self.speakers += speakers
        self._last.update(last)

    def _add(self, thread: int, asks: bool, begins: bool, speaker: int) -> None:
        self.threads.append(thread)
        self.asks.append(asks)
        self.begins.append(begins)
        self.speakers.append(speaker)

    def know_thread(self, name: str) -> int:
        """The number of a thread."""
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
            self._said.append(array("I"))
        return found

    def find_thread(self, name: str) -> int:
        """The number of a thread; -1 where nothing was said in it."""
        return self._numbers.get(name, -1)

    def last(self, thread: int) -> float:
        """When the last turn of a thread was said."""
        return self._last[thread]

    def know_speaker(self, name: str) -> int:
        """The number of somebody who speaks; 0 is nobody, and whoever comes after 65,535."""
        found = self._speakers.get(name)
        if found is None:
            if len(self._speakers) > 65_535:
                return 0
            found = self._speakers[name] = len(self._speakers)
            self.speaker_names.append(name)
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
            if score > 0:
                self._pass_on(given, number, score)
        if speaker:
            for number in given:
                if self.speakers[number] == speaker:
                    given[number] += NAMED
        return given

    def _pass_on(self, given: dict[int, float], number: int, score: float) -> None:
        said = self._said[self.threads[number]]
        place = bisect_left(said, number)
        if place == len(said) or said[place] != number:
            return
        part = QUESTION if self.asks[number] else SHARE
        fades = SHARE
        for behind in said[place + 1 : place + 1 + REACH]:
            if self.begins[behind]:
                break
            given[behind] = given.get(behind, 0.0) + score * part
            fades *= FADE
            part = fades
        part = SHARE
        for at in range(place, max(0, place - REACH), -1):
            if self.begins[said[at]]:
                break
            given[said[at - 1]] = given.get(said[at - 1], 0.0) + score * part
            part *= FADE
