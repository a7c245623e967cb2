"""Topics and queues inside one process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from flowrt.engine.delivery import Delivery
from flowrt.engine.transport import SYSTEM, Answer, NobodyListens, Payload, Receive
from flowrt.observe.log import get_logger

_log = get_logger("flowrt.transport")


class _Job:
    """A message that waits for a listener. `answer` is None where nobody waits for one."""

    __slots__ = ("answer", "delivery", "first", "order", "payload")

    def __init__(
        self,
        payload: Payload,
        answer: asyncio.Future[Payload] | None = None,
        order: str = "",
        delivery: str = "",
    ) -> None:
        self.payload = payload
        self.answer = answer
        self.order = order
        self.delivery = delivery
        self.first = asyncio.Event()
        """Set once the messages before it in its order have ended."""

    async def turn(self) -> None:
        await self.first.wait()


class _Queue:
    """Jobs with a bounded number of places, and those who work them."""

    def __init__(self, what: str, changed: Callable[[], None]) -> None:
        self.what = what
        self.consumers = 0
        self.open_jobs = 0
        """How many wait for a place, wait for a listener, or are worked on."""
        self._changed = changed
        self._full = False
        self._jobs: asyncio.Queue[_Job] = asyncio.Queue()
        self._orders: dict[str, deque[_Job]] = {}
        self._room = asyncio.Semaphore(0)

    @property
    def waiting(self) -> int:
        """How many wait for a listener."""
        return self._jobs.qsize()

    def add_consumer(self, buffer: int) -> None:
        self.consumers += 1
        for _ in range(buffer):
            self._room.release()

    async def put(self, job: _Job) -> None:
        """Wait for a place and take it."""
        self.open_jobs += 1
        if self._room.locked() and not self._full:
            # Once, and again after it was empty: who waits for room in a queue that they work
            # themselves waits for ever, and this line is all there is to see of it.
            self._full = True
            _log.warning("senders wait: the buffer is full", where=self.what)
        try:
            await self._room.acquire()
            if not self.consumers:
                raise nobody(self.what)
        except BaseException:
            self._done()
            raise
        self._line_up(job)
        self._jobs.put_nowait(job)

    async def offer(self, job: _Job) -> bool:
        """Take a place unless there is none; whether there was one."""
        if self._room.locked():
            return False
        await self.put(job)
        return True

    def _line_up(self, job: _Job) -> None:
        if not job.order:
            job.first.set()
            return
        line = self._orders.setdefault(job.order, deque())
        line.append(job)
        line[0].first.set()

    def _step_out(self, job: _Job) -> None:
        if not job.order:
            return
        line = self._orders[job.order]
        line.remove(job)
        if line:
            line[0].first.set()
        else:
            del self._orders[job.order]

    async def work(self, handle: Answer) -> None:
        """Handle one job after the other, until cancelled."""
        while True:
            job = await self._jobs.get()
            self._room.release()
            try:
                if job.answer is None:
                    await handle(job.payload, Delivery(job.delivery, job.turn))
                elif not job.answer.done():
                    await _answered(job.answer, job.payload, handle, self.what)
            except asyncio.CancelledError:
                if job.answer is None:
                    _log.error("a message was cut off", where=self.what)
                raise
            finally:
                self._step_out(job)
                self._done()

    def remove_consumer(self) -> None:
        """One consumer less; with the last one go the jobs that nobody will work."""
        self.consumers -= 1
        if self.consumers:
            return
        while not self._jobs.empty():
            job = self._jobs.get_nowait()
            self._room.release()
            if job.answer is None:
                _log.error("a message was lost: its last consumer stopped", where=self.what)
            elif not job.answer.done():
                job.answer.set_exception(nobody(self.what))
            self._step_out(job)
            self._done()
        # Whoever waits for a place finds that there is no consumer any more.
        for _ in range(self.open_jobs):
            self._room.release()

    def _done(self) -> None:
        self.open_jobs -= 1
        self._full = self._full and self.open_jobs > 0
        self._changed()


async def _answered(
    answer: asyncio.Future[Payload], payload: Payload, handle: Answer, what: str
) -> None:
    try:
        result = await handle(payload, Delivery())
    except asyncio.CancelledError:
        if not answer.done():
            answer.set_exception(NobodyListens(f"{what}: the consumer stopped before its answer"))
        raise
    if not answer.done():
        answer.set_result(result)


def nobody(what: str) -> NobodyListens:
    """The error of a message to a place where nobody listens."""
    return NobodyListens(
        f"{what} has no listener; a flow with a source of that subject must run in this service, "
        "and `invoke` starts no sources"
    )


class _Listeners:
    """The tasks of one subscription."""

    def __init__(self, queue: _Queue, handle: Answer, listeners: int, leave: Callable[[], None]):
        self._leave = leave
        self._tasks = [
            asyncio.create_task(queue.work(handle), name=f"{queue.what}, listener {number}")
            for number in range(listeners)
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._tasks = []
        self._leave()


class LocalTransport:
    """Carries messages within this process. They live as long as the process does.

    A subject that nobody of this process listens to has nobody at all, which `publish`, `dispatch`
    and `request` say at once.
    """

    def __init__(self) -> None:
        self._topics: dict[str, list[_Queue]] = {}
        self._queues: dict[str, _Queue] = {}
        self._waiting: set[asyncio.Event] = set()

    async def publish(self, subject: str, payload: Payload) -> None:
        if subject.startswith(SYSTEM):
            raise NobodyListens(f"topic {subject!r} leaves the service, and nothing carries it out")
        subscribers = self._topics.get(subject)
        if not subscribers:
            raise nobody(f"topic {subject!r}")
        for queue in tuple(subscribers):
            try:
                await queue.put(_Job(payload))
            except NobodyListens:
                # It stopped while it was waited for; the others are still to get theirs.
                _log.error("a message was lost: its subscriber stopped", where=queue.what)

    async def dispatch(
        self, subject: str, payload: Payload, *, order: str = "", delivery: str = ""
    ) -> None:
        await self._queue(subject).put(_Job(payload, order=order, delivery=delivery))

    async def offer(
        self, subject: str, payload: Payload, *, order: str = "", delivery: str = ""
    ) -> bool:
        # Without an id it comes once: what waits here is gone with the process.
        return await self._queue(subject).offer(_Job(payload, order=order, delivery=delivery))

    async def request(self, subject: str, payload: Payload) -> Payload:
        job = _Job(payload, asyncio.get_running_loop().create_future())
        assert job.answer is not None
        await self._queue(subject).put(job)
        return await job.answer

    async def subscribe(
        self, subject: str, receive: Receive, *, listeners: int, buffer: int, shared: str = ""
    ) -> _Listeners:
        async def handle(payload: Payload, _: Delivery) -> Payload:
            await receive(payload)
            return {}

        queue = _Queue(f"topic {subject!r}", self._changed)
        queue.add_consumer(buffer)
        subscribers = self._topics.setdefault(subject, [])
        subscribers.append(queue)

        def leave() -> None:
            subscribers.remove(queue)
            queue.remove_consumer()

        return _Listeners(queue, handle, listeners, leave)

    async def consume(
        self, subject: str, answer: Answer, *, listeners: int, buffer: int
    ) -> _Listeners:
        queue = self._queues.get(subject)
        if queue is None:
            queue = self._queues[subject] = _Queue(f"queue {subject!r}", self._changed)
        queue.add_consumer(buffer)

        def leave() -> None:
            queue.remove_consumer()
            if not queue.consumers:
                del self._queues[subject]

        return _Listeners(queue, answer, listeners, leave)

    def waiting(self) -> dict[str, int]:
        topics = (queue for queues in self._topics.values() for queue in queues)
        counts: dict[str, int] = {}
        for queue in (*self._queues.values(), *topics):
            counts[queue.what] = counts.get(queue.what, 0) + queue.waiting
        return counts

    def retire(self) -> None:
        """Nothing changes: what waits here can be done by nobody else, and not later."""

    async def close(self) -> None:
        """Nothing is left to do: the last consumer to stop has told those who wait."""

    async def idle(self) -> None:
        # An event of this call: the next may be made in another event loop.
        changed = asyncio.Event()
        self._waiting.add(changed)
        try:
            while self._open_jobs():
                changed.clear()
                await changed.wait()
        finally:
            self._waiting.discard(changed)

    def _queue(self, subject: str) -> _Queue:
        queue = self._queues.get(subject)
        if queue is None:
            raise nobody(f"queue {subject!r}")
        return queue

    def _open_jobs(self) -> int:
        topics = (queue for queues in self._topics.values() for queue in queues)
        return sum(queue.open_jobs for queue in (*self._queues.values(), *topics))

    def _changed(self) -> None:
        for changed in self._waiting:
            changed.set()
