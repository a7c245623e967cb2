"""Log lines for what may happen ten thousand times a second."""

from __future__ import annotations

import asyncio
from typing import Any

from flowrt.observe.log import Logger

PERIOD = 1.0
"""Seconds that one line stands for."""

MOST = 20
"""Lines in full in that time, where lines are written in full."""


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


class Trickle:
    """A logger whose lines are written in full, as long as there are few of a kind.

    Of each event the first `MOST` lines of a second; the others are counted in one at its end.
    """

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._counts: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def debug(self, event: str, **fields: Any) -> None:
        if self._fits(event):
            self._log.debug(event, **fields)

    def info(self, event: str, **fields: Any) -> None:
        if self._fits(event):
            self._log.info(event, **fields)

    def warning(self, event: str, **fields: Any) -> None:
        if self._fits(event):
            self._log.warning(event, **fields)

    def error(self, event: str, **fields: Any) -> None:
        if self._fits(event):
            self._log.error(event, **fields)

    def flush(self) -> None:
        """Tell now what was left out and is not told yet."""
        if self._timer is not None:
            self._timer.cancel()
        self._tell()

    def _fits(self, event: str) -> bool:
        loop = asyncio.get_running_loop()
        # Due and not rung: that of an event loop which has ended, with a service started again.
        if self._timer is None or self._timer.when() + PERIOD < loop.time():
            self._timer = loop.call_later(PERIOD, self._tell)
        self._counts[event] = self._counts.get(event, 0) + 1
        return self._counts[event] <= MOST

    def _tell(self) -> None:
        self._timer = None
        counts, self._counts = self._counts, {}
        for event, count in counts.items():
            if count > MOST:
                self._log.warning(
                    "more log lines of a kind were left out", of=event, count=count - MOST
                )
