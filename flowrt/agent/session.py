"""The working context of one run: loaded, kept inside its budget, saved."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from flowrt.agent.compactor import Compactor
from flowrt.agent.events import AgentEvents
from flowrt.agent.media import NO_FILES, Files, Opening
from flowrt.agent.spec import AgentSpec
from flowrt.engine.run import Run
from flowrt.errors import StoreError
from flowrt.llm.model import Reply, Request
from flowrt.llm.request import build_request
from flowrt.memory.compaction import Budget
from flowrt.memory.entry import Entry, assistant_entry, close_calls, tokens_of, user_entry
from flowrt.memory.meter import Meter
from flowrt.memory.transcript import Thread, Transcript
from flowrt.message import Message
from flowrt.observe.log import get_logger

SAVE_DEADLINE = 120.0
"""Seconds a save may take, counted from the save: a run's own length never loses its ending."""

_CANCELLED_GRACE = 5.0
"""Seconds a cancelled run waits for a save under way, so that the next run sees it."""

_log = get_logger("flowrt.agent.memory")


class Session:
    """What the model is shown in one run, and what becomes of it.

    `entries` are the stored transcript and everything this run added. A run that ends with an
    answer, a stop or its iteration limit is saved with `save`; one that fails or is cancelled
    leaves the thread as it was before.
    """

    def __init__(
        self,
        spec: AgentSpec,
        message: Message,
        run: Run,
        events: AgentEvents,
        thread: Thread | None,
    ) -> None:
        self._spec = spec
        self._run = run
        self._thread = thread
        self._seen = Transcript()
        self._compacted = False
        self.entries: list[Entry] = []
        self.meter = Meter(spec.fixed)
        self._compactor = Compactor(spec, message, run, events)
        self._total = 0
        self._stored = 0
        self._opening: Opening | None = None

    async def open(self, text: str, files: Files = NO_FILES) -> None:
        """Load the thread and add the opening turn. Raises `StoreError` where it cannot load."""
        if self._thread is not None:
            self._seen = await self._thread.load()
            self.entries = close_calls(self._seen.entries)
            self._total = tokens_of(self.entries)
            self._stored = len(self.entries)
            self.meter = Meter(self._spec.fixed, self._seen.reading)
        self._opening = Opening(user_entry(text), files)
        self.add(self._opening.entry)

    def add(self, entry: Entry) -> None:
        """Add one entry of this run; one without content is left out, no request may hold it."""
        if entry.message["content"]:
            self.entries.append(entry)
            entry.added = True
            self._total += entry.tokens

    def _drop_files(self) -> bool:
        """What came with the opening turn is sent once, unless it is kept; whether it went now."""
        if self._opening is None or self._spec.media.keep or not self._opening.drop_files():
            return False
        self._total = tokens_of(self.entries)
        return True

    def add_reply(self, reply: Reply) -> None:
        """Learn from a reply's usage, then add it."""
        # A prompt with files says nothing of those without them: a long PDF was taken for a part of
        # what rides on every request, and the next save pruned the whole conversation.
        if not self._drop_files() and reply.usage is not None:
            self.meter.measure(self._total, reply.usage.prompt_tokens)
        self.add(assistant_entry(reply.content))

    async def fit(self, iteration: int, *, limit: int | None = None) -> bool:
        """Compact where the prompt would exceed the budget; whether anything was cut.

        `limit` replaces the configured budget, for a prompt that the provider found too long.
        """
        budget = self._spec.budget
        if limit is not None:
            budget = Budget(min(limit, budget.limit), budget.compact_to)
        if self.meter.predict(self._total) <= budget.limit:
            return False
        kept = await self._compactor.compact(self.entries, self.meter, budget, iteration)
        # Not by length: a summary may stand in for a single message.
        cut = kept is not self.entries
        self._compacted = self._compacted or cut
        self.entries = kept
        self._total = tokens_of(kept)
        self._stored = sum(not entry.added for entry in kept)
        return cut

    def shrunk_limit(self) -> int:
        """A budget that is certainly below the prompt as it stands."""
        return max(1, self.meter.predict(self._total) - 1)

    def request(self) -> Request:
        """The request for the next turn."""
        return build_request(
            system=[self._spec.system],
            tools=self._spec.definitions,
            messages=[entry.message for entry in self.entries],
            stored=self._stored,
            model=self._spec.model_name,
            max_tokens=self._spec.max_tokens,
            temperature=self._spec.temperature,
        )

    async def save(self, iteration: int, *, reason: str = "") -> None:
        """Store what this run added, within `SAVE_DEADLINE` and also where the run is cancelled.

        A failure is logged, not raised: the answer exists and is delivered. `reason` is told to
        the model for calls that a stop left unanswered.
        """
        if self._thread is None:
            return
        self._drop_files()
        if reason:
            self._close(reason)
            self._total = tokens_of(self.entries)
        elif not self._compacted:
            # A run that was compacted already is near its low-water mark: what its last turn
            # added over the budget, the next run cuts before its first call.
            await self.fit(iteration)
        # The service holds it: also where this run is cancelled and its patience runs out.
        saving = self._run.runtime.spawn(self._write(), f"saving thread {self._thread.name!r}")
        try:
            await asyncio.shield(saving)
        except asyncio.CancelledError:
            # The next run on this thread starts when this one is gone: it must find the exchange.
            await asyncio.wait([saving], timeout=_CANCELLED_GRACE)
            raise

    def _close(self, reason: str) -> None:
        """Answer the calls that this run leaves open; the answers are the run's own."""
        before = {id(entry) for entry in self.entries}
        closed = close_calls(self.entries, reason)
        for entry in closed:
            entry.added = entry.added or id(entry) not in before
        self.entries = closed

    async def _write(self) -> None:
        assert self._thread is not None
        new = [entry for entry in self.entries if entry.added]
        kept = [entry for entry in self.entries if not entry.added]
        try:
            async with asyncio.timeout(SAVE_DEADLINE):
                await self._store(self._thread, kept, new)
        except (StoreError, TimeoutError) as error:
            _log.error(
                "the conversation could not be saved; the answer is delivered all the same",
                block=self._spec.label,
                thread=self._thread.name,
                error=str(error) or "the save took too long",
            )
            self._trace_failure(error)

    async def _store(self, thread: Thread, kept: Sequence[Entry], new: Sequence[Entry]) -> None:
        reading = self.meter.reading()
        if self._compacted:
            await thread.compact(self._seen, kept, new, reading)
        else:
            await thread.append(new, reading)

    def _trace_failure(self, error: BaseException) -> None:
        if self._run.trace is not None:
            attrs: dict[str, Any] = {"block": self._spec.address}
            self._run.trace.write(
                "agent.save-failed", flow=self._run.flow, error=error, attrs=attrs
            )
