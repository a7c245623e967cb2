"""One subscription of a process to a box that several processes share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from flowrt.engine.delivery import Delivery
from flowrt.engine.shared_turns import Turns
from flowrt.engine.transport import Answer
from flowrt.errors import StoreError, describe
from flowrt.ids import new_id
from flowrt.observe.log import get_logger
from flowrt.storage.encoding import encode_json
from flowrt.storage.mail.protocol import Delivery as Letter
from flowrt.storage.mail.protocol import Mail, Terms, shown

_T = TypeVar("_T")

DELIVERY = "delivery"
"""The key in a payload of the id under which it is delivered, each time."""

LONGEST_READ = 5.0
"""Seconds a reader waits for a message before it looks for those of readers that are gone."""

AGAIN = 0.5
"""Seconds until something is tried again that the store did not do."""

_log = get_logger("flowrt.transport")


class Reader:
    """Takes as many messages as have a listener, and holds each until its flow has ended.

    One that waits for its turn in an order takes up no listener: those before it may still have to
    be read, from here or from a reader that is gone.

    `open_` makes the box, and says from time to time that somebody reads it. `may_take` is awaited
    before each message. `own`: nobody else reads the box. `changed` is called when one has ended.
    """

    def __init__(
        self,
        mail: Mail,
        box: str,
        handle: Answer,
        *,
        listeners: int,
        terms: Terms,
        open_: Callable[[], Awaitable[None]],
        may_take: Callable[[], Awaitable[object]],
        own: bool,
        changed: Callable[[], None],
    ) -> None:
        self.where = shown(box)
        self.waiting = 0
        """How many messages waited for a reader when it was last asked."""
        self._mail = mail
        self.box = box
        self.own = own
        self._handle = handle
        self._listeners = listeners
        self._terms = terms
        self._open = open_
        self._may_take = may_take
        self._changed = changed
        self._name = new_id()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._at_work: set[str] = set()
        self._turns = Turns(self._heads)
        self._freed = asyncio.Event()
        self._troubles: set[str] = set()
        self._loop = asyncio.get_running_loop()
        self._look_at = self._loop.time()
        self._tasks = [
            asyncio.create_task(self._read(), name=f"read {self.where}"),
            asyncio.create_task(self._tend(), name=f"renew {self.where}"),
        ]

    @property
    def busy(self) -> bool:
        """Whether it holds a message."""
        return bool(self._running)

    async def stop(self) -> None:
        """Take nothing more; what is worked on is cut off, and goes to another reader."""
        await _cancel(self._tasks)
        cut = list(self._running.values())
        for _ in cut:
            _log.error("a message was cut off; it goes back", where=self.where)
        await _cancel(cut)
        try:
            # Also those whose delivery was under way when the reading was cancelled.
            await self._mail.give_back(self.box, self._name)
        except StoreError as error:
            _log.warning("messages were not put back, and are taken over later",
                         where=self.where, seconds=self._terms.stale, error=str(error))  # fmt: skip

    async def _read(self) -> None:
        while True:
            await self._a_free_listener()
            await self._may_take()
            for delivery in await self._insist(self._next, "messages are not read"):
                if delivery.id in self._running:
                    # Not renewed while the store was away, and now taken over from ourselves.
                    continue
                task = asyncio.create_task(self._work(delivery), name=f"a message of {self.where}")
                self._running[delivery.id] = task
                self._at_work.add(delivery.id)
                task.add_done_callback(partial(self._ended, delivery.id))

    async def _next(self) -> list[Letter]:
        try:
            return await self._taken_over() or await self._mail.read(
                self.box,
                self._name,
                count=max(1, self._free),
                wait=min(LONGEST_READ, self._terms.stale / 3),
            )
        except StoreError:
            # Whoever holds messages could not renew them either, and is to have its chance first.
            self._look_at = self._loop.time() + self._terms.stale / 2
            raise

    async def _taken_over(self) -> list[Letter]:
        """From time to time: messages of readers that are gone."""
        if self._loop.time() < self._look_at:
            return []
        free = self._free
        await self._open()
        taken = await self._mail.take_over(self.box, self._name, count=free, terms=self._terms)
        self._look_at = self._loop.time() + self._terms.stale / 3
        self.waiting = taken.waiting
        for id_ in taken.parked:
            _log.error("a message is parked: it was tried too often",
                       where=self.where, message=id_, tries=self._terms.tries)  # fmt: skip
        if taken.deliveries:
            _log.warning("messages of a replica that is gone are taken over",
                         where=self.where, messages=len(taken.deliveries))  # fmt: skip
        return taken.deliveries

    async def _work(self, delivery: Letter) -> None:
        payload = json.loads(delivery.data)
        turn = partial(self._turn, delivery) if delivery.order else None
        answer = await self._handle(payload, Delivery(payload.pop(DELIVERY, ""), turn))
        if "error" in answer and delivery.reply_to is None:
            await self._insist(lambda: self._park(delivery, answer["error"]), "a job is not parked")
            return
        data = encode_json(answer)
        await self._insist(
            lambda: self._mail.settle(self.box, delivery, data),
            "a message that is done is not acknowledged",
        )

    async def _turn(self, delivery: Letter) -> None:
        self._at_work.discard(delivery.id)
        self._freed.set()
        await self._turns.wait(delivery.id, delivery.order)
        await self._a_free_listener()
        self._at_work.add(delivery.id)

    async def _heads(self, orders: Sequence[str]) -> list[str]:
        ask = partial(self._mail.heads, self.box, orders)
        return await self._insist(ask, "whose turn it is, is not known")

    @property
    def _free(self) -> int:
        return self._listeners - len(self._at_work)

    async def _a_free_listener(self) -> None:
        while self._free <= 0:
            self._freed.clear()
            await self._freed.wait()

    async def _park(self, delivery: Letter, error: str) -> None:
        full = await self._mail.park(self.box, delivery, error, self._terms)
        _log.warning("a message is parked: its flow failed", where=self.where, message=delivery.id)
        if full:
            _log.error("the oldest parked message was lost", most=self._terms.parked)

    async def _tend(self) -> None:
        while True:
            await asyncio.sleep(self._terms.stale / 3)
            if self._running:
                await self._insist(self._renew, "messages are not renewed")

    async def _renew(self) -> None:
        await self._open()
        for id_ in await self._mail.renew(self.box, self._name, list(self._running)):
            # It may have ended in between.
            if (task := self._running.get(id_)) is not None:
                _log.error("a message was taken over; this run of it is cut off",
                           where=self.where, message=id_)  # fmt: skip
                task.cancel()

    async def _insist(self, what: Callable[[], Awaitable[_T]], trouble: str) -> _T:
        """Do it, again and again where the store fails; one log line says so, one that it works."""
        while True:
            try:
                done = await what()
            except StoreError as error:
                if trouble not in self._troubles:
                    self._troubles.add(trouble)
                    _log.error(f"{trouble}; tried again until it works",
                               where=self.where, error=str(error))  # fmt: skip
                await asyncio.sleep(AGAIN)
            else:
                if trouble in self._troubles:
                    self._troubles.discard(trouble)
                    _log.info("the store works again", where=self.where)
                return done

    def _ended(self, id_: str, task: asyncio.Task[None]) -> None:
        del self._running[id_]
        self._at_work.discard(id_)
        self._freed.set()
        self._turns.moved()
        self._changed()
        if not task.cancelled() and (error := task.exception()) is not None:
            # Not acknowledged: it is tried again, and parked in the end.
            _log.error("a message was not worked", where=self.where, error=describe(error))


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
