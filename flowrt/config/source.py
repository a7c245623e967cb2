"""From bytes to text that can be parsed: encodings, line ends, characters nobody can see."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from flowrt.errors import Fault, Position

MOST_BYTES = 4 * 1024 * 1024

# What YAML calls not printable, and a byte order mark in the middle of a text.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]"
)
_UTF16 = {codecs.BOM_UTF16_LE: "UTF-16 (little endian)", codecs.BOM_UTF16_BE: "UTF-16 (big endian)"}
_SAVE_AS_UTF8 = "save it as UTF-8"


def read_file(path: Path) -> bytes:
    """The bytes of a file, at most one more than `MOST_BYTES`. Raises `OSError`.

    Never all of it at once: a path may lead to a device that does not end.
    """
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)


class Unreadable(ValueError):
    """The text cannot be used; `fault` says why and where."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(str(fault))


def decode(data: bytes | str, file: str) -> str:
    """UTF-8 text without its byte order mark, with ``\\n`` line ends. Raises `Unreadable`.

    UTF-16 is refused by name: guessing at it gives half-read files (FB-102).
    """
    text = data if isinstance(data, str) else _from_bytes(data, file)
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def check_visible(text: str, file: str) -> None:
    """Refuse control characters, NUL above all, with their place. Raises `Unreadable`."""
    if match := _INVISIBLE.search(text):
        name = {"\0": "a NUL character", "\ufeff": "a byte order mark"}.get(
            match[0], f"the character U+{ord(match[0]):04X}, which YAML does not allow"
        )
        raise Unreadable(
            Fault(
                place(text, match.start(), file),
                "",
                f"found {name}",
                way_out="remove it, or write it as an escape in a double-quoted text",
            )
        )


def place(text: str, offset: int, file: str) -> Position:
    """The position of a character of `text`, counted from 0."""
    line_start = text.rfind("\n", 0, offset) + 1
    return Position(file, text.count("\n", 0, offset) + 1, offset - line_start + 1)


def _from_bytes(data: bytes, file: str) -> str:
    start = Position(file, 1, 1)
    if len(data) > MOST_BYTES:
        raise Unreadable(
            Fault(start, "", "the file is too long", f"at most {MOST_BYTES} bytes are read")
        )
    encoding = _UTF16.get(data[:2])
    if encoding is None and b"\0" in data[:2]:
        encoding = "UTF-16 or UTF-32"
    if encoding is not None:
        raise Unreadable(Fault(start, "", f"the file is {encoding}", way_out=_SAVE_AS_UTF8))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        raise Unreadable(
            Fault(
                place(before, len(before), file),
                "",
                f"the byte 0x{data[error.start]:02x} is not UTF-8",
                way_out=_SAVE_AS_UTF8,
            )
        ) from None
