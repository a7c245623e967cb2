"""Env files: ``KEY=VALUE`` lines (dialect 1.3)."""

from __future__ import annotations

from flowrt.config.source import Unreadable, decode
from flowrt.errors import Fault, Position
from flowrt.message import clean_text


def parse_dotenv(data: bytes | str, file: str) -> tuple[dict[str, str], list[Fault]]:
    """The variables of an env file, later lines over earlier ones, and what is wrong with it.

    Blank lines and those starting with ``#`` are skipped, a leading ``export`` too; spaces around
    key and value are trimmed; one pair of matching quotes is removed. A value is otherwise taken as
    it stands: no escapes, no comments after it, no reference to other variables.
    """
    try:
        text = decode(data, file)
    except Unreadable as unreadable:
        return {}, [unreadable.fault]
    values: dict[str, str] = {}
    faults = []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        words = key.split()
        if words[:1] == ["export"]:
            del words[0]
        if not equals or len(words) != 1:
            # The line is not shown: it may be half of a secret.
            found = "the line has no '='" if not equals else "the line has no usable name"
            faults.append(
                Fault(Position(file, number, 1), "", found, "a line is KEY=VALUE or a # comment")
            )
            continue
        values[words[0]] = clean_text(_unquoted(value.strip()))
    return values, faults


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
