"""Topics and queues over a store that several processes share."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

from flowrt.engine.delivery import Delivery
from flowrt.engine.questions import Questions
from flowrt.engine.shared_reader import DELIVERY, Reader
from flowrt.engine.transport import SYSTEM, Answer, NobodyListens, Payload, Receive
from flowrt.errors import StoreError
from flowrt.ids import new_id
from flowrt.observe.log import get_logger
from flowrt.storage.encoding import encode_json
from flowrt.storage.mail.protocol import Mail, ReplyTo, Terms, box_of, queue_box, shown

REPLICA_LIFETIME = 60.0
"""Seconds after which the subscription of a process that is gone is given up."""

SHARED_LIFETIME = 7 * 86_400.0
"""Seconds that messages wait for any replica with a shared subscription."""

_FIRST_WAIT, _LONGEST_WAIT = 0.01, 1.0

_log = get_logger("flowrt.transport")


class SharedTransport:
    """Carries messages between processes: each is kept until the flow that works it has ended.

    A queue keeps what is sent to it also while nobody works it. A message of a process that is
    killed is taken over by another one, so a flow may see it twice. `buffer` does not bound what
    waits, `Terms.places` does: nothing is taken before there is a listener for it.
    """

    def __init__(self, mail: Mail, terms: Terms | None = None) -> None:
        self._mail = mail
        self._terms = terms or Terms()
        self._readers: set[Reader] = set()
        self._waiting: set[asyncio.Event] = set()
        self._questions = Questions(mail, self._changed)
        self._retired = False
        self._full: Counter[str] = Counter()

    async def publish(self, subject: str, payload: Payload) -> None:
        data = encode_json(payload)
        if subject.startswith(SYSTEM):
            if not await self._mail.announce(subject, data):
                raise NobodyListens(f"topic {subject!r} leaves the service, and nobody listens")
            return
        found = await self._mail.publish(subject, data, self._terms.places)
        if found.lost:
            _log.error("messages were lost: their subscriber is gone",
                       where=f"topic {subject!r}", messages=found.lost)  # fmt: skip
        if not found.subscriptions:
            raise NobodyListens(f"topic {subject!r} has no listener in any replica")
        full = found.full

        async def sent() -> bool:
            nonlocal full
            if full:
                again = await self._mail.publish(subject, data, self._terms.places, full)
                full = again.full
            return not full

        if full:
            await self._with_room(box_of(subject, ""), sent)

    async def dispatch(
        self, subject: str, payload: Payload, *, order: str = "", delivery: str = ""
    ) -> None:
        await self._put(queue_box(subject), _kept(payload, delivery), order=order)

    async def offer(
        self, subject: str, payload: Payload, *, order: str = "", delivery: str = ""
    ) -> bool:
        data = _kept(payload, delivery)
        return (
            await self._mail.add(queue_box(subject), data, self._terms.places, None, order)
            is not None
        )

    async def request(self, subject: str, payload: Payload) -> Payload:
        box = queue_box(subject)
        with self._questions.ask() as (reply_to, answer):
            id_ = await self._put(box, _kept(payload), reply_to)
            try:
                return await answer
            except asyncio.CancelledError:
                await self._withdraw(box, id_)
                raise

    async def subscribe(
        self, subject: str, receive: Receive, *, listeners: int, buffer: int, shared: str = ""
    ) -> _Subscribed:
        async def handle(payload: Payload, _: Delivery) -> Payload:
            await receive(payload)
            return {}

        name = f"all/{shared}" if shared else f"one/{new_id()}"
        lifetime = SHARED_LIFETIME if shared else REPLICA_LIFETIME
        open_ = partial(self._mail.subscribe, subject, name, lifetime)
        # Before the flows that may publish run: what they say is not to be missed.
        await open_()
        reader = self._reader(box_of(subject, name), handle, listeners, open_, own=not shared)

        async def leave() -> None:
            lost = 0 if shared else await self._mail.unsubscribe(subject, name)
            if lost:
                _log.error("messages were lost: their subscriber stopped",
                           where=f"topic {subject!r}", messages=lost)  # fmt: skip

        return _Subscribed(reader, self._readers, leave)

    async def consume(
        self, subject: str, answer: Answer, *, listeners: int, buffer: int
    ) -> _Subscribed:
        box = queue_box(subject)
        open_ = partial(self._mail.open_box, box)
        await open_()
        return _Subscribed(self._reader(box, answer, listeners, open_), self._readers, _nothing)

    def _reader(
        self,
        box: str,
        handle: Answer,
        listeners: int,
        open_: Callable[[], Awaitable[None]],
        *,
        own: bool = False,
    ) -> Reader:
        self._retired = False
        reader = Reader(
            self._mail,
            box,
            handle,
            listeners=listeners,
            terms=self._terms,
            open_=open_,
            may_take=_nothing if own else self._may_take,
            own=own,
            changed=self._changed,
        )
        self._readers.add(reader)
        return reader

    def waiting(self) -> dict[str, int]:
        return {reader.where: reader.waiting for reader in self._readers}

    def retire(self) -> None:
        self._retired = True

    async def close(self) -> None:
        self._questions.close()

    async def idle(self) -> None:
        try:
            while True:
                await self._until(lambda: not any(reader.busy for reader in self._readers))
                # What only this process hears is lost when it stops.
                if not [True for box in self._own_boxes() if await self._mail.length(box)]:
                    return
                await asyncio.sleep(_FIRST_WAIT)
        except StoreError as error:
            _log.error("what is left to hear is not known", error=str(error))

    def _own_boxes(self) -> list[str]:
        return [reader.box for reader in self._readers if reader.own]

    async def _may_take(self) -> None:
        # A flow that waits for an answer may wait for a queue that only this process works.
        await self._until(lambda: not self._retired or bool(self._questions))

    async def _until(self, so: Callable[[], bool]) -> None:
        # An event of this call: the next may be made in another event loop.
        changed = asyncio.Event()
        self._waiting.add(changed)
        try:
            while not so():
                changed.clear()
                await changed.wait()
        finally:
            self._waiting.discard(changed)

    def _changed(self) -> None:
        for changed in self._waiting:
            changed.set()

    async def _put(
        self, box: str, data: bytes, reply_to: ReplyTo | None = None, order: str = ""
    ) -> str:
        id_ = None

        async def sent() -> bool:
            nonlocal id_
            id_ = await self._mail.add(box, data, self._terms.places, reply_to, order)
            return id_ is not None

        await self._with_room(box, sent)
        assert id_ is not None
        return id_

    async def _with_room(self, box: str, sent: Callable[[], Awaitable[bool]]) -> None:
        """Send until there is room. Asked again and again: who makes it may be another process."""
        if await sent():
            return
        # Once, and again after none waited.
        if not self._full[box]:
            _log.warning("senders wait: the buffer is full", where=shown(box))
        self._full[box] += 1
        try:
            pause = _FIRST_WAIT
            while not await sent():
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
                pause = min(_LONGEST_WAIT, pause * 1.5)
        finally:
            self._full[box] -= 1

    async def _withdraw(self, box: str, id_: str) -> None:
        try:
            await self._mail.withdraw(box, id_)
        except StoreError as error:
            _log.warning("a message that nobody waits for was not withdrawn",
                         where=shown(box), error=str(error))  # fmt: skip


class _Subscribed:
    """A reader, and what is to be done when it stops."""

    def __init__(
        self, reader: Reader, readers: set[Reader], leave: Callable[[], Awaitable[None]]
    ) -> None:
        self._reader = reader
        self._readers = readers
        self._leave = leave

    async def stop(self) -> None:
        await self._reader.stop()
        self._readers.discard(self._reader)
        try:
            await self._leave()
        except StoreError as error:
            _log.warning("a subscription was not ended, and runs out",
                         where=self._reader.where, error=str(error))  # fmt: skip


def _kept(payload: Payload, delivery: str = "") -> bytes:
    """The payload with the id that it keeps however often it is delivered."""
    return encode_json({**payload, DELIVERY: delivery or new_id()})


async def _nothing() -> None:
    """A queue stays when its last consumer leaves; what only one hears, it may always take."""
