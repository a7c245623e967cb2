"""What `flowrt memory` prints: JSON or lines, without secrets and without control characters."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from flowrt.observe.masking import mask, mask_text


def print_json(value: Any) -> None:
    """A value as one line of JSON."""
    print(json.dumps(mask(value), ensure_ascii=False))


def print_lines(lines: Iterable[str]) -> None:
    """Lines as people read them."""
    for line in lines:
        print(mask_text(line))


def inline(text: str) -> str:
    """What somebody said, on one line: it must neither move the cursor nor fake another line."""
    return "".join(char if char.isprintable() else _shown(char) for char in text)


def _shown(char: str) -> str:
    return "\\n" if char == "\n" else "\\t" if char == "\t" else ascii(char)[1:-1]


def moment(at: float) -> str:
    """Seconds since 1970 as UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def counted(number: int, one: str, many: str = "") -> str:
    """`3 turns`, `1 turn`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
