"""Log lines for what may happen ten thousand times a second."""

from __future__ import annotations

import asyncio
from typing import Any

from flowrt.observe.log import Logger

PERIOD = 1.0
"""Seconds that one line stands for."""


class Flood:
    """Counts events into log lines: the first at once, those of the next second in one line.

    Every event is in the `count` of exactly one line.
    """

    def __init__(self, log: Logger, event: str) -> None:
        self._log = log
        self._event = event
        self._count = 0
        self._fields: dict[str, Any] = {}
        self._timer: asyncio.TimerHandle | None = None

    def note(self, **fields: Any) -> None:
        """Count one event; `fields` are those of the line where it is the last one of its line."""
        self._count += 1
        self._fields = fields
        if self._timer is None:
            self._tell()

    def flush(self) -> None:
        """Tell now what is not told yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._count:
            self._write()

    def _tell(self) -> None:
        self._timer = None
        if self._count:
            self._write()
            self._timer = asyncio.get_running_loop().call_later(PERIOD, self._tell)

    def _write(self) -> None:
        self._log.warning(self._event, count=self._count, **self._fields)
        self._count = 0
