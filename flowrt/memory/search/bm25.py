"""An index of words that grows, and the BM25 scores of what it holds.

It lives in this process and is the same over every store. Full-text search of SQLite has neither a
rarity of words within one person's turns nor a `b`, and Redis has none at all.

Texts are numbered from 0 in the order in which they were added. One posting is four bytes for the
text and two for what its score is made of, so a hundred thousand turns take some ten megabytes.
"""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from flowrt.memory.search.tokens import terms

K1 = 1.2
"""How fast a word that is said again stops to count."""

B = 0.2
"""How much less a word counts in a long text. Turns are short, and the longer ones say more."""

_OFTEN = 7
_LONG = 8191
_TERM_BYTES, _POSTING_BYTES = 400, 6

EXACT, RERANKED = 10_000, 1_000
"""How many postings a search reads whole, and how many texts the commoner words are looked up in.

Ten thousand take about a millisecond. A history of thousands of turns stays below.
"""


# Before Python 3.12 an array cannot be subscripted when this runs.
_Posting: TypeAlias = "tuple[array[int], array[int]]"


class _Weights(dict[int, float]):
    """What a posting adds to a score, for each pair of frequency and length that occurs."""

    def __init__(self, average: float) -> None:
        super().__init__()
        self._average = average or 1.0

    def __missing__(self, code: int) -> float:
        often, length = code & _OFTEN, code >> 3
        weight = often * (K1 + 1) / (often + K1 * (1 - B + B * length / self._average))
        self[code] = weight
        return weight


class _Postings(dict[str, "_Posting"]):
    """For each term the numbers of the texts that say it, rising, and what their scores are of."""

    def __missing__(self, term: str) -> _Posting:
        found = self[term] = (array("I"), array("H"))
        return found


class WordIndex:
    """Which texts say which words."""

    def __init__(self) -> None:
        self._postings = _Postings()
        self._weights = _Weights(0)
        self._total = 0
        self._kept = 0
        self.count = 0

    @property
    def footprint(self) -> int:
        """About how many bytes of memory it takes."""
        return _TERM_BYTES * len(self._postings) + _POSTING_BYTES * self._kept

    def add(self, texts: Iterable[str]) -> None:
        """Index texts behind those that are there."""
        postings = self._postings
        number = self.count
        for text in texts:
            said = terms(text)
            length = min(len(said), _LONG) << 3
            different = set(said)
            if len(different) == len(said):
                # Most turns say no word twice, and counting costs as much as all the rest.
                for term in said:
                    numbers, codes = postings[term]
                    numbers.append(number)
                    codes.append(length | 1)
            else:
                for term, often in Counter(said).items():
                    numbers, codes = postings[term]
                    numbers.append(number)
                    codes.append(length | min(often, _OFTEN))
            self._total += len(said)
            self._kept += len(different)
            number += 1
        self.count = number
        self._weights = _Weights(self._total / max(number, 1))

    def _rarity(self, having: int) -> float:
        return math.log1p((self.count - having + 0.5) / (having + 0.5))

    def scores(self, wanted: Iterable[str]) -> dict[int, float]:
        """The scores of the texts that say any of the terms, by their numbers.

        Where the terms are in more than `EXACT` texts, the commonest only decide among the
        `RERANKED` that the rarer ones have put first.
        """
        scores: dict[int, float] = {}
        known = [self._postings[term] for term in dict.fromkeys(wanted) if term in self._postings]
        known.sort(key=lambda posting: len(posting[0]))
        seen = 0
        for place, (numbers, codes) in enumerate(known):
            seen += len(numbers)
            if place and seen > EXACT:
                self._rerank(scores, known[place:])
                break
            self._add(scores, numbers, codes)
        return scores

    def _add(self, scores: dict[int, float], numbers: array[int], codes: array[int]) -> None:
        rarity, weights = self._rarity(len(numbers)), self._weights
        if not scores:
            scores.update(zip(numbers, [rarity * weights[code] for code in codes], strict=True))
            return
        known = scores.get
        for number, code in zip(numbers, codes, strict=True):
            scores[number] = known(number, 0.0) + rarity * weights[code]

    def _rerank(self, scores: dict[int, float], common: list[_Posting]) -> None:
        best = heapq.nlargest(RERANKED, scores, key=scores.__getitem__)
        for numbers, codes in common:
            rarity = self._rarity(len(numbers))
            for number in best:
                place = bisect_left(numbers, number)
                if place < len(numbers) and numbers[place] == number:
                    scores[number] += rarity * self._weights[codes[place]]
