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

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return self._rows.nbytes + 8 * len(self._numbers)

    @property
    def count(self) -> int:
        """How many texts have a vector."""
        return len(self._numbers)

    def has(self, number: int) -> bool:
        """Whether the text of this number has a vector."""
        return number < len(self._known) and bool(self._known[number])

    def add(self, vectors: Mapping[int, bytes | Sequence[float]]) -> None:
        """Keep vectors, made to length 1, of texts that have none yet."""
        import numpy as np

        new = {number: vector for number, vector in vectors.items() if not self.has(number)}
        if not new:
            return
        self._make_room(len(new))
        for number, vector in new.items():
            row = (
                np.frombuffer(vector, dtype="<f4")
                if isinstance(vector, bytes)
                else np.asarray(vector, dtype=np.float32)
            )
            length = float(np.linalg.norm(row))
            self._rows[len(self._numbers)] = row / length if length else row
            self._numbers.append(number)
            if number >= len(self._known):
                self._known.extend(bytes(number + 1 - len(self._known)))
            self._known[number] = 1

    def _make_room(self, more: int) -> None:
        import numpy as np

        needed = len(self._numbers) + more
        if needed > len(self._rows):
            # Doubling: one by one, a long history would be copied once a turn.
            grown = np.empty((max(needed, 2 * len(self._rows)), self.size), dtype=np.float32)
            grown[: len(self._numbers)] = self._rows[: len(self._numbers)]
            self._rows = grown

    def add_to(
        self, scores: Mapping[int, float], query: Sequence[float], among: Rows | None, best: int
    ) -> dict[int, float]:
        """The `best` texts by words and meaning together, with both added.

        `scores` are those by words, in standard deviations. `among` says of each number whether it
        may be found; None allows all.
        """
        import numpy as np

        if not self.count:
            return dict(scores)
        numbers = np.frombuffer(self._numbers, dtype=np.uint32)
        asked = np.asarray(query, dtype=np.float32)
        near = self._rows[: self.count] @ (asked / (float(np.linalg.norm(asked)) or 1.0))
        near = (near - near.mean()) * (MEANING / (float(near.std()) or 1.0))
        total = np.zeros(max(int(numbers.max()), max(scores, default=0)) + 1, dtype=np.float32)
        total[numbers] = near
        if scores:
            said = np.fromiter(scores, dtype=np.int64, count=len(scores))
            total[said] += np.fromiter(scores.values(), dtype=np.float32, count=len(scores))
        if among is not None:
            total = np.where(among[: len(total)], total, -np.inf)
        top = np.argpartition(-total, best)[:best] if best < len(total) else np.arange(len(total))
        return {int(number): float(total[number]) for number in top if total[number] > 0}
