"""The meter: how many tokens a prompt will be, learned from what the provider reported.

There is no tokenizer here. The provider's own count is the ruler; chars/4 only shares it out among
messages. A prompt is ``overhead + scale · estimate(messages)``, where the overhead is the system
prompt and the tool schemas. Both are learned from the first measured turn on and stored with the
transcript, so a resumed thread is cut before its first call, not after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# A tokenizer that needs fewer than one token for 8 characters, or more than one for each, is not
# one; a figure outside is noise of two almost equal points.
_SCALE_MIN, _SCALE_MAX = 0.5, 4.0

# Two measurements closer than this (in estimated tokens) say nothing about the scale.
_LEAST_STEP = 64


@dataclass(frozen=True, slots=True)
class Reading:
    """What is stored with a transcript. `fixed` is the estimate of system and tools back then."""

    overhead: float
    scale: float
    fixed: int

    def to_json(self) -> dict[str, Any]:
        return {
            "overhead": round(self.overhead),
            "scale": round(self.scale, 4),
            "fixed": self.fixed,
        }

    @classmethod
    def from_json(cls, head: Any) -> Reading | None:
        """The reading in a transcript's head, or None where nothing was measured yet."""
        if not isinstance(head, dict) or "scale" not in head:
            return None
        return cls(float(head["overhead"]), float(head["scale"]), int(head["fixed"]))


class Meter:
    """Predicts prompt sizes in the provider's tokens from estimates (chars/4) of messages.

    `fixed` is the estimate of system prompt, tool schemas and whatever else rides on each request.
    """

    __slots__ = ("_fixed", "_last", "measured", "overhead", "scale")

    def __init__(self, fixed: int, stored: Reading | None = None) -> None:
        self._fixed = fixed
        self._last: tuple[int, int] | None = None
        self.measured = stored is not None
        if stored is None:
            self.scale, self.overhead = 1.0, float(fixed)
        else:
            self.scale = stored.scale
            # The prompt may have been edited since: the difference is known as an estimate.
            self.overhead = max(0.0, stored.overhead + stored.scale * (fixed - stored.fixed))

    def size(self, estimate: int) -> int:
        """Tokens of messages with this estimate."""
        return round(self.scale * estimate)

    def predict(self, estimate: int) -> int:
        """Tokens of a prompt whose messages have this estimate."""
        return round(self.overhead + self.scale * estimate)

    def room(self, budget: float) -> float:
        """The estimate of messages that make a prompt of exactly `budget` tokens; may be < 0."""
        return (budget - self.overhead) / self.scale

    def measure(self, estimate: int, prompt_tokens: int) -> None:
        """Learn from a prompt whose messages had this estimate and that was read as so many."""
        if self._last is not None and abs(estimate - self._last[0]) >= _LEAST_STEP:
            step = (prompt_tokens - self._last[1]) / (estimate - self._last[0])
            self.scale = _clamp(step)
        elif not self.measured:
            self.scale = _clamp(prompt_tokens / max(1, self._fixed + estimate))
        self.overhead = prompt_tokens - self.scale * estimate
        if self.overhead < 0:
            self.scale = prompt_tokens / max(1, estimate)
            self.overhead = 0.0
        self._last = (estimate, prompt_tokens)
        self.measured = True

    def reading(self) -> Reading | None:
        """What to store, or None where nothing was ever measured."""
        return Reading(self.overhead, self.scale, self._fixed) if self.measured else None


def _clamp(scale: float) -> float:
    return min(_SCALE_MAX, max(_SCALE_MIN, scale))
