"""Trying a model call again: bounded, with growing waits, and never silently.

Our own rather than each SDK's, because three kinds of failure have to share one bound (a status, a
broken connection, an error inside a stream that had already begun: FB-23), each retry leaves a log
line, and time is the runtime's clock.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from flowrt.clock import Clock
from flowrt.errors import ModelUnavailable
from flowrt.observe.log import get_logger

FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
"""Seconds before the first retry, and what doubling it ends at. `retry-after` goes before both."""

_log = get_logger("flowrt.llm.retry")

T = TypeVar("T")


class Transient(Exception):
    """One attempt failed in a way that the next may not.

    `retry_after` is what the provider asked to wait, in seconds; None where it did not say.
    """

    def __init__(self, error: ModelUnavailable, retry_after: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_after = retry_after


async def with_retries(
    attempt: Callable[[], Awaitable[T]],
    *,
    retries: int,
    patience: float,
    clock: Clock,
    name: str,
) -> T:
    """The reply of the first attempt that has one.

    Raises the last attempt's `ModelUnavailable` after `retries` more attempts, or as soon as the
    next wait would end more than `patience` seconds after the beginning.
    """
    began = clock.monotonic()
    for number in range(retries + 1):
        try:
            return await attempt()
        except Transient as failure:
            wait = _wait(number, failure.retry_after)
            if number == retries:
                raise _given_up(failure.error, number + 1) from failure.__cause__
            if clock.monotonic() - began + wait > patience:
                raise _given_up(
                    failure.error, number + 1, f", the next would be {wait:.0f} s away"
                ) from failure.__cause__
            _log.warning(
                "a model call failed and is tried again",
                connector=name,
                attempt=number + 1,
                wait=round(wait, 2),
                error=str(failure.error),
            )
        await clock.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _given_up(error: ModelUnavailable, attempts: int, why: str = "") -> ModelUnavailable:
    if attempts == 1 and not why:
        return error
    tried = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    return ModelUnavailable(f"{error} (after {tried}{why})", status=error.status)


def _wait(number: int, retry_after: float | None) -> float:
    if retry_after is not None and retry_after > 0:
        return retry_after
    # Up to a quarter less, so that many runs that failed together do not return together.
    spread = 1 - random.random() / 4  # noqa: S311 - not a secret
    return min(FIRST_WAIT * 2.0 ** min(number, 30), LONGEST_WAIT) * spread


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds that `retry-after-ms` or `retry-after` (seconds or a date) ask to wait."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return float(value) * unit
        except ValueError:
            pass
        try:
            return (parsedate_to_datetime(value) - now).total_seconds()
        except (ValueError, TypeError):
            continue  # neither a number nor a date with a zone: as if it were not there
    return None
