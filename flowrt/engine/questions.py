"""Questions of this process that others answer, over a store that they share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flowrt.engine.shared_reader import AGAIN, LONGEST_READ
from flowrt.engine.transport import NobodyListens, Payload
from flowrt.errors import StoreError
from flowrt.ids import new_id
from flowrt.observe.log import get_logger
from flowrt.storage.mail.protocol import Mail, ReplyTo

_log = get_logger("flowrt.transport")


class Questions:
    """The open questions. While there are any, a task reads what is answered."""

    def __init__(self, mail: Mail, changed: Callable[[], None]) -> None:
        self._mail = mail
        self._changed = changed
        self._process = new_id()
        self._open: dict[str, asyncio.Future[Payload]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._after = "0"

    def __bool__(self) -> bool:
        return bool(self._open)

    @contextmanager
    def ask(self) -> Iterator[tuple[ReplyTo, asyncio.Future[Payload]]]:
        """Where an answer can be sent to until the context ends, and the answer."""
        question = new_id()
        answer: asyncio.Future[Payload] = asyncio.get_running_loop().create_future()
        self._open[question] = answer
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="read answers")
        self._changed()
        try:
            yield ReplyTo(self._process, question), answer
        finally:
            del self._open[question]
            if not self._open:
                self._reading.cancel()
                self._reading = None
            self._changed()

    def close(self) -> None:
        """Tell those who wait that no answer will come."""
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(NobodyListens("the service stopped before the answer came"))

    async def _read(self) -> None:
        failing = False
        while True:
            try:
                found = await self._mail.replies(self._process, self._after, wait=LONGEST_READ)
            except StoreError as error:
                if not failing:
                    _log.error("answers are not read; tried again", error=str(error))
                failing = True
                await asyncio.sleep(AGAIN)
                continue
            failing = False
            for at, question, data in found:
                self._after = at
                answer = self._open.get(question)
                if answer is not None and not answer.done():
                    answer.set_result(json.loads(data))
