"""The vectors of one person's turns and facts, searched exactly.

One float32 matrix: a hundred thousand rows of 256 numbers are 100 MB and take some milliseconds.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Rows = np.ndarray[Any, np.dtype[np.float32]]

MEANING = 0.8
"""How much nearness in meaning counts beside the words, both in standard deviations."""


class Vectors:
    """Vectors of one model and size, by the numbers of the texts in the index of words."""

    def __init__(self, model: str, size: int) -> None:
        import numpy as np

        self.model = model
        self.size = size
        self._rows: Rows = np.empty((0, size), dtype=np.float32)
        self._numbers = array("I")
        self._known = bytearray()
        self.count = 0

    @property
    def footprint(self) -> int:
        """How much memory it takes."""
        return self._rows.nbytes + 8 * len(self._numbers)

    def has(self, number: int) -> bool:
        """Whether the text of this number has a vector."""
        return number < len(self._known) and bool(self._known[number])

    def add(self, vectors: Mapping[int, bytes]) -> None:
        """Keep vectors, made to length 1, of texts that have none yet."""
        import numpy as np

        new = [number for number in vectors if not self.has(number)]
        if not new:
            return
        data = b"".join(vectors[number] for number in new)
        rows = np.frombuffer(data, dtype="<f4").reshape(len(new), self.size)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        self._make_room(len(new))
        start = len(self._numbers)
        self._rows[start : start + len(new)] = rows / np.where(lengths, lengths, 1)
        self._numbers.extend(new)
        self._known.extend(bytes(max(0, max(new) + 1 - len(self._known))))
        for number in new:
            self._known[number] = 1
        self.count += len(new)

    def discard(self, number: int) -> None:
        """Count a text that is gone no longer; its row stays, and nobody asks for it."""
        if self.has(number):
            self._known[number] = 0
            self.count -= 1

    def _make_room(self, more: int) -> None:
        import numpy as np

        needed = len(self._numbers) + more
        if needed > len(self._rows):
            # Doubling: one by one, a long history would be copied once a turn.
            grown = np.empty((max(needed, 2 * len(self._rows)), self.size), dtype=np.float32)
            grown[: len(self._numbers)] = self._rows[: len(self._numbers)]
            self._rows = grown

    def add_to(
        self, scores: Mapping[int, float], query: Sequence[float], among: bytes | None, best: int
    ) -> dict[int, float]:
        """The `best` texts by words and meaning together, with both added.

        `scores` are those by words, in standard deviations. `among` has a byte for
        each number, 0 where it may not be found; None allows all.
        """
        import numpy as np

        if not self.count:
            return dict(scores)
        numbers = np.frombuffer(self._numbers, dtype=np.uint32)
        asked = np.asarray(query, dtype=np.float32)
        near = self._rows[: len(numbers)] @ (asked / (float(np.linalg.norm(asked)) or 1.0))
        near = (near - near.mean()) * (MEANING / (float(near.std()) or 1.0))
        last = max(int(numbers.max()), max(scores, default=0))
        total = np.full(last + 1, -np.inf, dtype=np.float32)
        total[numbers] = near
        if scores:
            said = np.fromiter(scores, dtype=np.int64, count=len(scores))
            words = np.fromiter(scores.values(), dtype=np.float32, count=len(scores))
            # A text that waits for its vector is ranked as one of middling nearness.
            total[said] = words + np.where(np.isfinite(total[said]), total[said], 0)
        if among is not None:
            may = np.frombuffer(among, dtype=np.bool_)
            total = np.where(may[: len(total)], total, -np.inf)
        top = np.argpartition(-total, best)[:best] if best < len(total) else np.arange(len(total))
        return {int(number): float(total[number]) for number in top if total[number] > -np.inf}
