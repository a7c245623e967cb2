"""An index of words that grows, and the BM25 scores of what it holds.

It lives in this process and is the same over every store. Full-text search of SQLite has neither a
rarity of words within one person's turns nor a `b`, and Redis has none at all.

Texts are numbered from 0 in the order in which they were added. They stand in runs: a closed run
can be stored and read again, which takes a hundredth of making it.
"""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from flowrt.memory.search.postings import OFTEN, RUN, ClosedRun, OpenRun, key

K1 = 1.2
"""How fast a word that is said again stops to count."""

B = 0.2
"""How much less a word counts in a long text. Turns are short, and the longer ones say more."""

EXACT, RERANKED = 10_000, 1_000
"""How many postings a search reads whole, and how many texts the commoner words are looked up in.

Ten thousand take about a millisecond. A history of thousands of turns stays below.
"""


class _Weights(dict[int, float]):
    """What a posting adds to a score, for each pair of frequency and length that occurs."""

    def __init__(self, average: float) -> None:
        super().__init__()
        self._average = average or 1.0

    def __missing__(self, code: int) -> float:
        often, length = code & OFTEN, code >> 3
        weight = often * (K1 + 1) / (often + K1 * (1 - B + B * length / self._average))
        self[code] = weight
        return weight


class _Piece(NamedTuple):
    """The postings of a term in one run, whose texts are numbered from `start` on.

    They are those from `low` to `high`. Cut out only where they are read whole: those of common
    words are long, and mostly looked at in a few places.
    """

    start: int
    numbers: array[int]
    codes: array[int]
    low: int
    high: int


class _Said(NamedTuple):
    """The postings of a term, and how many texts say it."""

    having: int
    pieces: list[_Piece]


class WordIndex:
    """Which texts say which words."""

    def __init__(self) -> None:
        self._runs: list[ClosedRun] = []
        self._starts: list[int] = []
        self._open = OpenRun()
        self._start = 0
        self._closed_bytes = 0
        self._total = 0
        self._weights = _Weights(0)

    @property
    def count(self) -> int:
        """How many texts there are."""
        return self._start + self._open.count

    @property
    def room(self) -> int:
        """How many texts the open run still takes."""
        return RUN - self._open.count

    @property
    def footprint(self) -> int:
        """About how many bytes of memory it takes."""
        return self._closed_bytes + self._open.footprint

    def add(self, texts: Iterable[str]) -> None:
        """Index texts behind those that are there, in the open run."""
        before = self._open.total
        self._open.add(texts)
        self._count_terms(self._open.total - before)

    def close(self) -> tuple[int, ClosedRun]:
        """Close the open run, and give the number of its first text, and the run."""
        run, start = self._open.closed(), self._start
        if run.texts:
            self._open = OpenRun()
            self._append(run)
        return start, run

    def take(self, run: ClosedRun) -> None:
        """Index the texts of a closed run behind those that are there; the open run is empty."""
        self._append(run)
        self._count_terms(run.total)

    def _append(self, run: ClosedRun) -> None:
        self._runs.append(run)
        self._starts.append(self._start)
        self._start += run.texts
        self._closed_bytes += run.footprint

    def _count_terms(self, more: int) -> None:
        self._total += more
        self._weights = _Weights(self._total / max(self.count, 1))

    def _said(self, term: str) -> _Said:
        wanted = key(term)
        pieces = [
            _Piece(start, run.numbers, run.codes, *span)
            for start, run in zip(self._starts, self._runs, strict=True)
            if (span := run.find(wanted))
        ]
        if term in self._open:
            numbers, codes = self._open[term]
            pieces.append(_Piece(self._start, numbers, codes, 0, len(numbers)))
        return _Said(sum(piece.high - piece.low for piece in pieces), pieces)

    def _rarity(self, having: int) -> float:
        return math.log1p((self.count - having + 0.5) / (having + 0.5))

    def scores(self, wanted: Iterable[str]) -> dict[int, float]:
        """The scores of the texts that say any of the terms, by their numbers.

        Where the terms are in more than `EXACT` texts, the commonest only decide among the
        `RERANKED` that the rarer ones have put first.
        """
        scores: dict[int, float] = {}
        known = [said for term in dict.fromkeys(wanted) if (said := self._said(term)).having]
        known.sort(key=lambda said: said.having)
        seen = 0
        for place, said in enumerate(known):
            seen += said.having
            if place and seen > EXACT:
                self._rerank(scores, known[place:])
                break
            self._add(scores, said)
        return scores

    def _add(self, scores: dict[int, float], said: _Said) -> None:
        rarity, weights = self._rarity(said.having), self._weights
        first, known = not scores, scores.get
        for start, all_numbers, all_codes, low, high in said.pieces:
            numbers, codes = all_numbers[low:high], all_codes[low:high]
            texts = map(start.__add__, numbers)
            if first:
                added = [rarity * weights[code] for code in codes]
                scores.update(zip(texts, added, strict=True))
                continue
            for text, code in zip(texts, codes, strict=True):
                scores[text] = known(text, 0.0) + rarity * weights[code]

    def _rerank(self, scores: dict[int, float], common: list[_Said]) -> None:
        best = sorted(heapq.nlargest(RERANKED, scores, key=scores.__getitem__))
        for having, pieces in common:
            rarity = self._rarity(having)
            for start, numbers, codes, low, high in pieces:
                last = start + numbers[high - 1]
                for text in best[bisect_left(best, start) : bisect_left(best, last + 1)]:
                    place = bisect_left(numbers, text - start, low, high)
                    if numbers[place] == text - start:
                        scores[text] += rarity * self._weights[codes[place]]
