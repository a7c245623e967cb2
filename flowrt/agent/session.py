"""The working context of one run: loaded, kept inside its budget, saved."""

from __future__ import annotations

import asyncio
from typing import Any

from flowrt.agent.compactor import Compactor
from flowrt.agent.events import AgentEvents
from flowrt.agent.keeper import Ending, Keeper, Working
from flowrt.agent.media import NO_FILES, Files, Opening
from flowrt.agent.spec import AgentSpec
from flowrt.engine.run import Run
from flowrt.errors import StoreError
from flowrt.llm.estimate import estimate_blocks
from flowrt.llm.model import Reply, Request
from flowrt.llm.request import build_request
from flowrt.memory.compaction import Budget
from flowrt.memory.entry import (
    Entry,
    answer_to,
    assistant_entry,
    close_calls,
    tokens_of,
    user_entry,
)
from flowrt.memory.meter import Meter
from flowrt.message import Message
from flowrt.observe.log import get_logger

SAVE_DEADLINE = 120.0
"""Seconds a save may take, counted from the save: a run's own length never loses its ending."""

_CANCELLED_GRACE = 5.0
"""Seconds a cancelled run waits for a save under way, so that the next run sees it."""

_log = get_logger("flowrt.agent.memory")


class Session:
    """What the model is shown in one run, and what becomes of it.

    `entries` are the stored transcript and everything this run added. An exchange begins with
    `begin` and ends with `save`, or with `abandon` where the run fails or is cancelled; what
    becomes of it then is the keeper's rule.
    """

    def __init__(
        self,
        spec: AgentSpec,
        message: Message,
        run: Run,
        events: AgentEvents,
        keeper: Keeper | None,
    ) -> None:
        self._spec = spec
        self._run = run
        self._events = events
        self._keeper = keeper
        self._compacted = False
        self._ended = True
        self.entries: list[Entry] = []
        self.meter = Meter(spec.fixed)
        self._compactor = Compactor(spec, message, run, events)
        self._total = 0
        self._stored = 0
        self._opening: Opening | None = None
        self._delivery = ""

    async def open(self, delivery: str = "") -> None:
        """Load the thread, for a message with this mark if it may come again.

        Raises `StoreError` where the run cannot do without.
        """
        self._delivery = delivery
        if self._keeper is None:
            return
        seen = await self._keeper.load(delivery)
        self.entries = close_calls(seen.entries)
        self._total = tokens_of(self.entries)
        self._stored = len(self.entries)
        fixed = self._spec.fixed
        if self._keeper.preamble:
            fixed += estimate_blocks([{"type": "text", "text": self._keeper.preamble}])
        self.meter = Meter(fixed, seen.reading)
        if self._keeper.blind:
            await self._events.emit("signal", 1, signal="blind", text=self._keeper.blind)

    @property
    def interrupted(self) -> bool:
        """Whether what was loaded ends in an exchange whose run died and that is to be finished."""
        return self._keeper is not None and self._keeper.interrupted is not None

    @property
    def comes_again(self) -> bool:
        """Whether that exchange is the one of this very message."""
        return self.interrupted and self._keeper is not None and self._keeper.comes_again

    @property
    def answered(self) -> str:
        """What this very message was answered when it came before; "" where it was not."""
        return answer_to(self.entries, self._delivery) if self._delivery else ""

    def take_up(self) -> None:
        """Go on with the exchange of the run that died."""
        self._ended = False

    def begin(self, text: str, files: Files = NO_FILES) -> None:
        """Open an exchange with a user turn; whatever there is already belongs to earlier ones."""
        for entry in self.entries:
            entry.added = False
        self._stored = len(self.entries)
        self._compacted = False
        self._ended = False
        self._opening = Opening(user_entry(text, self._delivery), files)
        self.add(self._opening.entry)
        if self._keeper is not None:
            self._keeper.begin(self._opening.entry)
            self._keeper.said(text)

    def say(self, text: str) -> None:
        """Add a user turn that came in meanwhile."""
        self.add(user_entry(text, self._delivery))
        if self._keeper is not None:
            self._keeper.said(text)

    def add(self, entry: Entry) -> None:
        """Add one entry of this run; one without content is left out, no request may hold it."""
        if entry.message["content"]:
            self.entries.append(entry)
            entry.added = True
            self._total += entry.tokens

    def _shows_files(self) -> bool:
        """Whether the opening turn has files that will not be kept."""
        return self._opening is not None and not self._spec.media.keep and self._opening.has_files

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
        if self._keeper is not None:
            self._keeper.asked(self.entries, self._stored, files=self._shows_files())
        return build_request(
            system=[self._spec.system],
            tools=self._spec.definitions,
            messages=[entry.message for entry in self.entries],
            stored=self._stored,
            preamble=self._keeper.preamble if self._keeper is not None else None,
            model=self._spec.model_name,
            max_tokens=self._spec.max_tokens,
            temperature=self._spec.temperature,
        )

    async def checkpoint(self, iteration: int, *, force: bool = False) -> None:
        """A good moment to store what there is; `force` does not ask how much it is."""
        if self._keeper is not None:
            await self._keeper.checkpoint(self._working(iteration), force=force)

    async def source(self) -> int:
        """The turn of the record that a note made now comes from; 0 where none will be.

        Stores the context first: a run that dies is then found, and its question recorded under
        the number given here. Raises `StoreError`.
        """
        if self._keeper is None:
            return 0
        await self.checkpoint(0, force=True)
        return await self._keeper.source()

    async def save(self, ending: Ending, *, reason: str = "") -> None:
        """Store what this run added, within `SAVE_DEADLINE` and also where the run is cancelled.

        A failure is logged, not raised: the answer exists and is delivered. `reason` is told to
        the model for calls that a stop left unanswered.
        """
        if self._keeper is None:
            return
        self._drop_files()
        if reason:
            self._close(reason)
            self._total = tokens_of(self.entries)
        elif not self._compacted and not ending.failed:
            # A run that was compacted already is near its low-water mark: what its last turn
            # added over the budget, the next run cuts before its first call.
            await self.fit(ending.iterations)
        self._ended = True
        # The service holds it: also where this run is cancelled and its patience runs out.
        writing = self._write(self._keeper, ending)
        saving = self._run.runtime.spawn(writing, f"saving thread {self._keeper.name!r}")
        try:
            await asyncio.shield(saving)
        except asyncio.CancelledError:
            # The next run on this thread starts when this one is gone: it must find the exchange.
            await asyncio.wait([saving], timeout=_CANCELLED_GRACE)
            raise
        if not ending.failed:
            await self._keeper.finish(ending)

    async def abandon(self, reason: str) -> None:
        """End an exchange that failed or was cancelled; nothing where it has ended already."""
        if not self._ended:
            await self.save(Ending(0, stop_reason=reason, failed=True))

    def _close(self, reason: str) -> None:
        """Answer the calls that this run leaves open; the answers are the run's own."""
        before = {id(entry) for entry in self.entries}
        closed = close_calls(self.entries, reason)
        for entry in closed:
            entry.added = entry.added or id(entry) not in before
        self.entries = closed

    def _working(self, iteration: int) -> Working:
        return Working(
            list(self.entries),
            self._compacted,
            self.meter.reading(),
            iteration,
            self.meter.size(self._total),
        )

    async def _write(self, keeper: Keeper, ending: Ending) -> None:
        try:
            async with asyncio.timeout(SAVE_DEADLINE):
                await keeper.save(self._working(ending.iterations), ending)
        except (StoreError, TimeoutError) as error:
            _log.error(
                "the conversation could not be saved; the answer is delivered all the same",
                block=self._spec.label,
                thread=keeper.name,
                error=str(error) or "the save took too long",
            )
            self._trace_failure(error)

    def _trace_failure(self, error: BaseException) -> None:
        if self._run.trace is not None:
            attrs: dict[str, Any] = {"block": self._spec.address}
            self._run.trace.write(
                "agent.save-failed", flow=self._run.flow, error=error, attrs=attrs
            )
