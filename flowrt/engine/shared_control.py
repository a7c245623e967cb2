"""Questions to all processes on one store, announced to those that listen right now."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from flowrt.engine.control import Take
from flowrt.engine.shared_reader import AGAIN
from flowrt.errors import StoreError
from flowrt.ids import new_id
from flowrt.observe.log import get_logger
from flowrt.storage.encoding import encode_json
from flowrt.storage.mail.protocol import Mail

PATIENCE = 5.0
"""Seconds to wait for the answers of the others."""

_ALL = "control"

_log = get_logger("flowrt.control")


class _Asked:
    """A question under way: true when one took it, false when all that heard it did not."""

    def __init__(self) -> None:
        self.taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._refused = 0
        self._heard_by: int | None = None

    def answered(self, taken: bool) -> None:
        self._refused += not taken
        self._settle(taken)

    def heard_by(self, others: int) -> None:
        self._heard_by = others
        self._settle(False)

    def _settle(self, taken: bool) -> None:
        everybody = self._heard_by is not None and self._refused >= self._heard_by
        if (taken or everybody) and not self.taken.done():
            self.taken.set_result(taken)


class SharedControl:
    """Listens on a channel of all processes and on one of its own, for answers.

    What is announced while the connection is broken is not heard: who asked then acts as though
    nobody were there.
    """

    def __init__(self, mail: Mail) -> None:
        self._mail = mail
        self._process = new_id()
        self._take: Take | None = None
        self._asked: dict[str, _Asked] = {}
        self._listening: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._answering: set[asyncio.Task[None]] = set()

    async def serve(self, take: Take) -> None:
        self._take = take
        await self._listen()

    async def ask(self, question: dict[str, Any]) -> bool:
        number = new_id()
        data = encode_json({"from": self._process, "number": number, "ask": question})
        try:
            async with asyncio.timeout(PATIENCE):
                await self._listen()
                asked = self._asked[number] = _Asked()
                # One of those who hear it is this process.
                asked.heard_by(await self._mail.announce(_ALL, data) - 1)
                return await asked.taken
        except TimeoutError:
            _log.warning("a replica did not say whether it has what was asked for")
        except StoreError as error:
            _log.error("the other replicas were not asked", error=str(error))
        finally:
            self._asked.pop(number, None)
        return False

    async def close(self) -> None:
        tasks = [*self._answering, *([self._listening] if self._listening else [])]
        self._listening = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _listen(self) -> None:
        # Done where the event loop it was in has ended without a stop of the service.
        if self._listening is None or self._listening.done():
            self._ready = asyncio.Event()
            self._listening = asyncio.create_task(self._hear_on(), name="listen to replicas")
        await self._ready.wait()

    async def _hear_on(self) -> None:
        failing = False
        while True:
            try:
                await self._mail.listen([_ALL, self._process], self._ready.set, self._heard)
            except StoreError as error:
                if not failing:
                    _log.error("replicas are not heard; tried again until they are",
                               error=str(error))  # fmt: skip
                failing = True
                # Who waits goes on: where the store is gone, the run itself will say so.
                self._ready.set()
                await asyncio.sleep(AGAIN)

    def _heard(self, data: bytes) -> None:
        told = json.loads(data)
        if "ask" not in told:
            asked = self._asked.get(told["number"])
            if asked is not None:
                asked.answered(told["taken"])
        elif told["from"] != self._process:
            taken = self._take is not None and self._take(told["ask"])
            answer = encode_json({"number": told["number"], "taken": taken})
            task = asyncio.create_task(self._answer(told["from"], answer), name="answer a replica")
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, process: str, data: bytes) -> None:
        try:
            await self._mail.announce(process, data)
        except StoreError as error:
            _log.error("a replica was not answered", error=str(error))
