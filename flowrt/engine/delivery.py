"""A message that is kept somewhere until its flow has ended."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable


class Delivery:
    """How a message came that may come again: its process may be killed before its flow has ended.

    `id` is the same each time it comes, "" where it comes once.
    """

    __slots__ = ("_asking", "_done", "_turn", "id")

    def __init__(self, id_: str = "", turn: Callable[[], Awaitable[None]] | None = None) -> None:
        self.id = id_
        self._turn = turn
        self._asking = asyncio.Lock()
        self._done: Counter[tuple[str, ...]] = Counter()

    async def turn(self) -> None:
        """Wait until no earlier message of the same order, such as a conversation's, is waiting or
        worked on anywhere; it stays this one's turn until its flow has ended."""
        # Branches of one message may ask at once, and it stands in the line once.
        async with self._asking:
            if self._turn is not None:
                await self._turn()
                self._turn = None

    def mark(self, *what: str) -> str:
        """The name of something that is done for this message: the first of `what`, the second.

        When the message comes again the same thing has the same name, which is how it is found to
        be done already. "" where the message comes once.
        """
        if not self.id:
            return ""
        self._done[what] += 1
        # Lengths first: no two lists of names may read the same.
        parts = (self.id, *what, str(self._done[what]))
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
