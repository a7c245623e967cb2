"""Which texts of a run say which words: open while the run grows, then closed.

Texts are numbered from 0 within a run. A code holds what a posting's score is made of: how often
the text says the word, and how long the text is.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

from flowrt.memory.search.tokens import terms

RUN = 1024
"""Texts of a run. The last, open one of a person is made anew by each process, in some 25 ms."""

OFTEN, LONG = 7, 8191

_OPEN_BYTES, _POSTING_BYTES = 400, 4

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
        return ClosedRun.of(self.count, self.total, {key(term): self[term] for term in self})


class ClosedRun(NamedTuple):
    """A run that grows no more: the postings of all terms one behind the other.

    `keys` of the terms rise; `ends` say where the postings of each end.
    """

    texts: int
    total: int
    keys: array[int]
    ends: array[int]
    numbers: array[int]
    codes: array[int]

    @classmethod
    def of(cls, texts: int, total: int, postings: Mapping[int, Posting]) -> ClosedRun:
        """A run of postings by the keys of their terms."""
        keys, ends = array("Q", sorted(postings)), array("I")
        numbers, codes = array("H"), array("H")
        for known in keys:
            more_numbers, more_codes = postings[known]
            numbers += more_numbers
            codes += more_codes
            ends.append(len(numbers))
        return cls(texts, total, keys, ends, numbers, codes)

    @property
    def footprint(self) -> int:
        """How many bytes of memory it takes."""
        return sum(len(column) * column.itemsize for column in self[2:])

    def find(self, wanted: int) -> tuple[int, int] | None:
        """From where to where `numbers` and `codes` are of the term of a key; None: nowhere."""
        place = bisect_left(self.keys, wanted)
        if place == len(self.keys) or self.keys[place] != wanted:
            return None
        return self._span(place)

    def _span(self, place: int) -> tuple[int, int]:
        return self.ends[place - 1] if place else 0, self.ends[place]

    def _at(self, place: int) -> Posting:
        low, high = self._span(place)
        return self.numbers[low:high], self.codes[low:high]

    def only(self, texts: list[int]) -> ClosedRun:
        """The same of some of its texts, which rise; they are numbered anew."""
        if len(texts) == self.texts:
            return self
        numbered = dict(zip(texts, range(len(texts)), strict=True))
        left, lengths = dict[int, Posting](), dict[int, int]()
        for place, known in enumerate(self.keys):
            kept = [pair for pair in zip(*self._at(place), strict=True) if pair[0] in numbered]
            lengths.update((number, code >> 3) for number, code in kept)
            if kept:
                numbers = array("H", (numbered[number] for number, _ in kept))
                left[known] = numbers, array("H", (code for _, code in kept))
        return ClosedRun.of(len(texts), sum(lengths.values()), left)


def key(term: str) -> int:
    """What a closed run knows a term by: of two different ones in 2**64 it is the same."""
    data = term.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")
