"""Answers to GET that are used again."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

Key = tuple[str, tuple[tuple[str, str], ...]]


def key_of(url: str, headers: Mapping[str, str]) -> Key:
    """What an answer depends on: the whole URL, and every header of the request, credentials of a
    block among them. Those of the connector are the same for all."""
    return url, tuple(sorted((name.lower(), value) for name, value in headers.items()))


class AnswerCache(Generic[T]):
    """At most `most` answers, each for `ttl` seconds, 0: for ever; the longest unused go first."""

    def __init__(self, ttl: float, most: int) -> None:
        self._ttl = ttl
        self._most = most
        self._entries: OrderedDict[Key, tuple[float, T]] = OrderedDict()

    def get(self, key: Key, now: float) -> T | None:
        """The answer, where one is kept and still good at `now`, in seconds."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        until, answer = entry
        if now >= until:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return answer

    def put(self, key: Key, answer: T, now: float) -> None:
        """Keep an answer that came at `now`."""
        self._entries[key] = (now + self._ttl if self._ttl else math.inf, answer)
        self._entries.move_to_end(key)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)
