"""Long texts in parts that Slack takes, each readable on its own."""

from __future__ import annotations

import re

LIMIT = 3900
"""Characters of a part. Slack asks for 4,000 at most; beyond that it cuts where it likes."""

_FENCE = "```"
# What means something else, or nothing, when it is cut in two.
_ATOM = re.compile(
    r"&(?:amp|lt|gt);"
    r"|<[^<>\n]{1,2000}>"
    r"|`+"
    # A character with what is joined to it: accents, skin tones, families, flags.
    r"|[\U0001f1e6-\U0001f1ff]{2}"
    r"|.(?:\u200d.|[\u0300-\u036f\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f])+",
    re.DOTALL,
)


def split(text: str, limit: int = LIMIT) -> list[str]:
    """`text` (mrkdwn) in order, each part of at most `limit` characters.

    Cut between paragraphs where that can be, else lines, else words. A code block that is cut is
    closed and opened again. Nothing is lost but the white space at a cut.
    """
    parts: list[str] = []
    fenced = False
    rest = text
    while True:
        if fenced and rest.startswith(_FENCE):
            rest, fenced = rest[len(_FENCE) :].lstrip("\n"), False
        head = f"{_FENCE}\n" if fenced else ""
        if len(head) + len(rest) <= limit:
            return [*parts, head + rest] if rest or not parts else parts
        end, begin = _cut(rest, limit - len(head) - len(_FENCE) - 1)
        piece = rest[:end]
        if piece.count(_FENCE) % 2:
            fenced = not fenced
        if fenced and piece.rstrip().endswith(_FENCE) and len(piece.rstrip()) > len(_FENCE):
            # It opens where it is cut: the next part begins with it.
            end = begin = piece.rstrip().rfind(_FENCE)
            piece, fenced = rest[:end].rstrip("\n"), False
        parts.append(head + piece + (f"\n{_FENCE}" if fenced else ""))
        rest = rest[begin:]


def _cut(text: str, room: int) -> tuple[int, int]:
    """Where a part ends and the next begins; between them is white space at most."""
    for separator in ("\n\n", "\n", " "):
        # One that lies early would leave a part nearly empty.
        at = text.rfind(separator, room // 2, room + 1)
        if at > 0 and _whole(text, at) == at:
            return at, at + len(separator)
    at = _whole(text, room) or room
    return at, at


def _whole(text: str, at: int) -> int:
    """`at`, or the beginning of what lies across it."""
    for found in _ATOM.finditer(text, max(0, at - 2100), at + 2100):
        if found.start() >= at:
            break
        if found.end() > at:
            return found.start()
    return at
