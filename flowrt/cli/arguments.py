"""What commands are given: JSON in an argument, a file or standard input; times; files to write.

Raises `CallError` for what cannot be read, with the option it was given to.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from flowrt.errors import CallError


def read_data(given: str | None) -> Any:
    """The body that `--data` names: JSON, ``@FILE`` or ``-``; without it, what is piped in."""
    text = read_text(given)
    return None if text is None or (given is None and not text.strip()) else _json(text, "--data")


def read_text(given: str | None) -> str | None:
    """The text that `--data` names; None where there is none."""
    if given is None:
        if sys.stdin is None or sys.stdin.isatty() or not _is_piped():
            return None
        return _decoded(sys.stdin.buffer.read(), "standard input")
    if given == "-":
        return _decoded(sys.stdin.buffer.read(), "standard input")
    if not given.startswith("@"):
        return as_utf8(given)
    try:
        return _decoded(Path(given[1:]).read_bytes(), given[1:])
    except OSError as error:
        raise CallError(f"--data: cannot read {given[1:]!r}: {error.strerror}") from error


def as_utf8(given: str) -> str:
    """An argument as UTF-8: under the C locale Python has read its bytes as something else."""
    return os.fsencode(given).decode("utf-8", "replace")


def _is_piped() -> bool:
    import stat

    mode = os.fstat(sys.stdin.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _decoded(raw: bytes, what: str) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CallError(f"{what} is UTF-16; save it as UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CallError(f"{what} is not UTF-8: {error}") from error


def _json(text: str, what: str) -> Any:
    def refuse(constant: str) -> Any:
        raise CallError(f"{what}: {constant} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        shown = text if len(text) <= 60 else text[:60] + "…"
        raise CallError(
            f"{what} is not valid JSON: {error}; found {shown!r}; "
            "quote the whole of it for your shell, or use @FILE"
        ) from error


def read_object(text: str | None, what: str) -> dict[str, Any]:
    """The JSON object of an option; an empty one where the option is not given."""
    value = {} if text is None else _json(as_utf8(text), what)
    if not isinstance(value, dict):
        raise CallError(f"{what} must be a JSON object, found {value!r}")
    return value


def seconds(text: str, option: str) -> float | None:
    """The length of time an option gives; None where it is 0, for no limit."""
    from pydantic_core import PydanticCustomError

    from flowrt.engine.fields import parse_duration

    try:
        return parse_duration(text) or None
    except PydanticCustomError as error:
        raise CallError(f"{option}: {error}") from error


@contextlib.contextmanager
def lines(path: str | None, option: str) -> Iterator[IO[str] | None]:
    """A file to write lines to, readable by its owner only; None where none is asked for."""
    if path is None:
        yield None
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise CallError(f"{option}: cannot write {path!r}: {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        yield file
