"""Cancelling a coroutine at one chosen await, to try them all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Final

CANCELS: Final = (False, True)
"""The two moments of an await: while it waits, and when its result is there but not yet seen."""


class Cancelled:
    """The outcome of a coroutine that was cancelled."""


class _Stepped:
    """Awaits a coroutine and cancels the task it runs in at its await number `at`."""

    def __init__(self, work: Coroutine[Any, Any, Any], at: int, *, late: bool) -> None:
        self._work = work
        self._left = at
        self._late = late

    def __await__(self) -> Generator[Any, Any, Any]:
        error: BaseException | None = None
        while True:
            try:
                waited = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration as end:
                return end.value
            if self._left == 0:
                self._cancel(waited)
            self._left -= 1
            error = None
            try:
                yield waited
            except BaseException as caught:  # noqa: BLE001 - handed to the coroutine
                error = caught

    def _cancel(self, waited: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self._late and isinstance(waited, asyncio.Future):
            # Runs before the task's own callback: the result is there, the task does not know yet.
            waited.add_done_callback(lambda _: task.cancel())
        else:
            task.cancel()


async def cancelled_at(work: Coroutine[Any, Any, Any], step: int, *, late: bool) -> Any:
    """Run `work` in a task that is cancelled at its await number `step`, counted from 0.

    Gives its result where it came to its end, or `Cancelled()`. Raises `AssertionError` where the
    coroutine swallowed the cancellation.
    """
    stepped = _Stepped(work, step, late=late)

    async def run() -> Any:
        return await stepped

    task = asyncio.create_task(run())
    await asyncio.wait([task])
    if task.cancelled():
        return Cancelled()
    result = task.result()
    assert stepped._left >= 0, f"the cancellation at await {step} was swallowed"
    return result
