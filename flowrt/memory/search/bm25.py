"""An index of words that grows, and the BM25 scores of what it holds.

It lives in this process and is the same over every store. Full-text search of SQLite has neither a
rarity of words within one person's turns nor a `b`, and Redis has none at all.

Texts are numbered from 0 in the order in which they were added. One posting is four bytes for the
text and two for what its score is made of, so a hundred thousand turns take some ten megabytes.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable

from flowrt.memory.search.tokens import terms

K1 = 1.2
"""How fast a word that is said again stops to count."""

B = 0.2
"""How much less a word counts in a long text. Turns are short, and the longer ones say more."""

_OFTEN = 7
_LONG = 8191
_POSTING = 6


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


class WordIndex:
    """Which texts say which words."""

    def __init__(self) -> None:
        self._postings: dict[str, tuple[array[int], array[int]]] = {}
        self._weights = _Weights(0)
        self._total = 0
        self.count = 0
        self._bytes = 0

    @property
    def footprint(self) -> int:
        """About how much memory it takes."""
        return self._bytes

    def add(self, texts: Iterable[str]) -> None:
        """Index texts behind those that are there."""
        postings = self._postings
        number = self.count
        for text in texts:
            said = terms(text)
            length = min(len(said), _LONG) << 3
            for term, often in Counter(said).items():
                found = postings.get(term)
                if found is None:
                    found = postings[term] = (array("I"), array("H"))
                    self._bytes += 300
                found[0].append(number)
                found[1].append(length | min(often, _OFTEN))
                self._bytes += _POSTING
            self._total += len(said)
            number += 1
        self.count = number
        self._weights = _Weights(self._total / max(number, 1))

    def rarity(self, term: str) -> float:
        """How much it tells that a text says `term`: more the fewer do; 0 where none does."""
        found = self._postings.get(term)
        if found is None:
            return 0.0
        having = len(found[0])
        return math.log1p((self.count - having + 0.5) / (having + 0.5))

    def scores(self, wanted: Iterable[str]) -> dict[int, float]:
        """The scores of the texts that say any of the terms, by their numbers."""
        scores: dict[int, float] = {}
        weights, known = self._weights, scores.get
        for term in dict.fromkeys(wanted):
            rarity = self.rarity(term)
            if not rarity:
                continue
            numbers, codes = self._postings[term]
            for number, code in zip(numbers, codes, strict=True):
                scores[number] = known(number, 0.0) + rarity * weights[code]
        return scores
