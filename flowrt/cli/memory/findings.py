"""What `flowrt memory doctor` finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that was found: a fault, or a note about what may be meant. And the way out."""

    level: Literal["fault", "note"]
    where: str
    what: str
    way_out: str


CLEAR = "`flowrt memory clear` removes the thread"
SAVE_FIRST = (
    "`flowrt memory export` keeps it as it is; mend its working.json there, "
    "`flowrt memory clear` the thread, and import"
)
