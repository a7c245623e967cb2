"""Which texts of a run say which words: open while the run grows, then closed.

Texts are numbered from 0 within a run. A code holds what a posting's score is made of: how often
the text says the word, and how long the text is.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import TypeAlias

from flowrt.memory.search.tokens import terms

RUN = 1024
"""Texts of a run. The last, open one of a person is made anew by each process, in some 25 ms."""

OFTEN, LONG = 7, 8191

_OPEN_BYTES, _CLOSED_BYTES, _POSTING_BYTES = 400, 150, 4

# Before Python 3.12 an array cannot be subscripted when this runs.
Posting: TypeAlias = "tuple[array[int], array[int]]"
"""The numbers of the texts, rising, and a code for each."""


class OpenRun(dict[str, Posting]):
    """A run that grows, by terms. `count` are its texts, `total` the terms that they say."""

    def __init__(self) -> None:
        super().__init__()
        self.count = self.total = self._kept = 0

    def __missing__(self, term: str) -> Posting:
        found = self[term] = (array("H"), array("H"))
        return found

    @property
    def footprint(self) -> int:
        """About how many bytes of memory it takes."""
        return _OPEN_BYTES * len(self) + _POSTING_BYTES * self._kept

    def add(self, texts: Iterable[str]) -> None:
        """Add texts behind those that are there."""
        for number, text in enumerate(texts, self.count):
            said = terms(text)
            length = min(len(said), LONG) << 3
            different = set(said)
            if len(different) == len(said):
                # Most turns say no word twice, and counting costs as much as all the rest.
                for term in said:
                    numbers, codes = self[term]
                    numbers.append(number)
                    codes.append(length | 1)
            else:
                for term, often in Counter(said).items():
                    numbers, codes = self[term]
                    numbers.append(number)
                    codes.append(length | min(often, OFTEN))
            self.total += len(said)
            self._kept += len(different)
            self.count = number + 1

    def closed(self) -> ClosedRun:
        """The same, without room to grow."""
        numbers, codes = array("H"), array("H")
        for more_numbers, more_codes in self.values():
            numbers += more_numbers
            codes += more_codes
        lengths = array("H", (len(posting[0]) for posting in self.values()))
        return ClosedRun(self.count, self.total, list(self), lengths, numbers, codes)


class ClosedRun:
    """A run that grows no more: the postings of all terms one behind the other."""

    __slots__ = ("_ends", "_places", "codes", "count", "lengths", "numbers", "total")

    def __init__(
        self,
        count: int,
        total: int,
        terms: list[str],
        lengths: array[int],
        numbers: array[int],
        codes: array[int],
    ) -> None:
        self.count = count
        self.total = total
        self.lengths = lengths
        self.numbers = numbers
        self.codes = codes
        self._ends = list(accumulate(lengths, initial=0))
        self._places = dict(zip(terms, range(len(terms)), strict=True))

    @property
    def terms(self) -> list[str]:
        """The terms, in the order of their postings."""
        return list(self._places)

    @property
    def footprint(self) -> int:
        """About how many bytes of memory it takes."""
        return _CLOSED_BYTES * len(self.lengths) + _POSTING_BYTES * len(self.numbers)

    def only(self, texts: list[int]) -> ClosedRun:
        """The same of some of its texts, which rise; they are numbered anew."""
        if len(texts) == self.count:
            return self
        numbered = dict(zip(texts, range(len(texts)), strict=True))
        run, lengths = OpenRun(), dict[int, int]()
        for term in self._places:
            for number, code in zip(*self[term], strict=True):
                if number in numbered:
                    numbers, codes = run[term]
                    numbers.append(numbered[number])
                    codes.append(code)
                    lengths[number] = code >> 3
        run.count, run.total = len(texts), sum(lengths.values())
        return run.closed()

    def __contains__(self, term: str) -> bool:
        return term in self._places

    def __getitem__(self, term: str) -> Posting:
        """The texts that say a term."""
        place = self._places[term]
        start, end = self._ends[place : place + 2]
        return self.numbers[start:end], self.codes[start:end]
