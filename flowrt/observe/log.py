"""Logging: structured lines on standard error, structlog behind it, imported on the first line.

structlog takes a tenth of a second to import and normal operation is quiet, so a run that logs
nothing never pays for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

from flowrt.observe.masking import mask

LEVELS = {"debug": 10, "info": 20, "warning": 30, "warn": 30, "error": 40}


_sink: ContextVar[Callable[[dict[str, Any]], object] | None] = ContextVar("sink", default=None)


def capture_logs(sink: Callable[[dict[str, Any]], object]) -> None:
    """Hand the lines of this context, and of tasks started from it, to `sink` instead. For tests.

    A line is `{level, logger, event, …fields}`, secrets masked.
    """
    _sink.set(sink)


class Logger(Protocol):
    """What flowrt asks of a logger: an event in words, and fields."""

    def debug(self, event: str, **fields: Any) -> None: ...
    def info(self, event: str, **fields: Any) -> None: ...
    def warning(self, event: str, **fields: Any) -> None: ...
    def error(self, event: str, **fields: Any) -> None: ...


class _LazyLogger:
    """Reaches structlog only once a line passes the level."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def _write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        if LEVELS[level] < _threshold():
            return
        if (sink := _sink.get()) is not None:
            sink(mask({"level": level, "logger": self._name, "event": event, **fields}))
            return
        _structlog(self._name, level, event, fields)

    def debug(self, event: str, **fields: Any) -> None:
        self._write("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write("error", event, fields)


def get_logger(name: str) -> Logger:
    """A logger whose lines carry `logger=name`. Level: `LOG_LEVEL`, else info."""
    return _LazyLogger(name)


def _threshold() -> int:
    return LEVELS.get(os.environ.get("LOG_LEVEL", "info").lower(), 20)


def _structlog(name: str, level: str, event: str, fields: dict[str, Any]) -> None:
    import structlog

    if not structlog.is_configured():
        _configure()
    masked = {key: mask(value) for key, value in fields.items()}
    getattr(structlog.get_logger().bind(logger=name), level)(mask(event), **masked)


def _configure() -> None:
    """Lines on standard error: for people at a terminal, JSON elsewhere."""
    import structlog

    renderer: Any = (
        structlog.dev.ConsoleRenderer()
        if sys.stderr.isatty()
        else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        # Standard error is looked up for each line: a test or a shell may have replaced it.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
