"""Keeps the conversation of an agent with an `agentId`: its context, its record, its title."""

from __future__ import annotations

from collections.abc import Sequence

from flowrt.agent.checkpoints import Checkpoints, OpenExchange
from flowrt.agent.conversation import Conversation
from flowrt.agent.events import AgentEvents
from flowrt.agent.keeper import Ending, Working
from flowrt.agent.preamble import read_preamble
from flowrt.agent.record import Record
from flowrt.agent.showing import Showing
from flowrt.agent.spec import AgentSpec, RememberSpec
from flowrt.agent.titles import title_of
from flowrt.engine.run import Run
from flowrt.errors import StoreError
from flowrt.memory.entry import Entry, assistant_entry
from flowrt.memory.transcript import Thread, Transcript
from flowrt.message import Message
from flowrt.observe.log import get_logger

INTERRUPTED = "interrupted"
"""The `stopReason` of a question whose run died."""

_log = get_logger("flowrt.agent.memory")


class AgentKeeper:
    """A run that cannot read its context goes on *blind*: it starts empty, and writes nothing to a
    conversation that it did not see.

    `legacy` is the thread of the same id without `agentId`, from before the block had one.
    """

    def __init__(
        self,
        spec: AgentSpec,
        remember: RememberSpec,
        conversation: Conversation,
        legacy: Thread,
        message: Message,
        run: Run,
        events: AgentEvents,
        *,
        blind: str = "",
    ) -> None:
        self._spec = spec
        self._remember = remember
        self._conversation = conversation
        # What it was when the run began: tool branches change the variables.
        self._message = message.scoped()
        self._run = run
        self._events = events
        self._showing = Showing(
            conversation, spec.frame, spec.frame_name, recording=remember.record
        )
        self._checkpoints = Checkpoints(conversation, legacy, run.clock, self._showing)
        self._record = Record(conversation, self._showing)
        self._opening: Entry | None = None
        self._question = ""
        self._opened = False
        self._touched = False
        self.name = conversation.place.thread
        self.preamble = ""
        self.blind = blind
        self.interrupted: int | None = None
        self.comes_again = False

    async def load(self, delivery: str = "") -> Transcript:
        """The context, and the notes about the user; what cannot be read is empty."""
        seen = Transcript()
        if not self.blind:
            try:
                seen = await self._checkpoints.load()
            except StoreError as error:
                self.blind = str(error)
        if self.blind:
            self._tell("the conversation cannot be read; the run goes on without it", self.blind)
        if self._remember.facts:
            try:
                preamble = await read_preamble(self._conversation)
                self.preamble, self._showing.notes = preamble.text, preamble.notes
            except StoreError as error:
                self._tell("the notes about the user cannot be read", str(error))
        if self._checkpoints.open is not None:
            self.interrupted = await self._take_up(seen.entries, self._checkpoints.open, delivery)
        return seen

    async def _take_up(
        self, entries: list[Entry], exchange: OpenExchange, delivery: str
    ) -> int | None:
        """Where the exchange of a run that died begins, if it is to be finished; else record it."""
        start = exchange.start
        self._opening = entries[start]
        for entry in entries[start:]:
            if entry.opens and entry.kind == "message":
                self._record.said(_text(entry))
                self._showing.said(before=True)
        self.comes_again = bool(delivery) and self._opening.delivery == delivery
        try:
            # The run may have died between its record and its context.
            if self._remember.record and await self._record.recorded() >= exchange.seq:
                if answer := await self._record.answer(exchange.seq):
                    entries.append(assistant_entry([{"type": "text", "text": answer}]))
                return None
            if self._remember.resume or self.comes_again:
                return start
            if self._remember.record:
                await self._record.write(Ending(0, stop_reason=INTERRUPTED, failed=True))
        except StoreError as error:
            self._tell("what an interrupted run was asked could not be recorded", str(error))
        return None

    def begin(self, opening: Entry) -> None:
        self._record = Record(self._conversation, self._showing)
        self._showing.begin()
        self._opening = opening
        self._question = ""

    def said(self, text: str) -> None:
        self._question = self._question or text
        self._record.said(text)
        self._showing.said()

    def asked(self, entries: Sequence[Entry], stored: int, *, files: bool) -> None:
        self._showing.asked(entries, stored, files=files)

    async def checkpoint(self, working: Working, *, force: bool = False) -> None:
        """Store the context where enough has happened; a failure is logged, the run goes on."""
        if self.blind or not (force or self._checkpoints.due(working.entries)):
            return
        try:
            seq = await self._record.seq() if self._remember.record else 0
            await self._touch()
            await self._checkpoints.write(working, self._opening, seq)
        except StoreError as error:
            self._tell("a checkpoint could not be stored", str(error))

    async def source(self) -> int:
        """The number in the record that what is noted now comes from; 0 where there is none."""
        if self.blind or not self._remember.record:
            return 0
        return await self._record.seq()

    async def save(self, working: Working, ending: Ending) -> None:
        """Record the exchange, then store the context.

        In this order: the record is what people are shown of a conversation, and a run that dies
        between the two is found by the open exchange that its context still tells of.
        """
        if self.blind:
            return
        self._opened = False
        if not ending.failed:
            self._showing.number(working.entries)
        if self._remember.record:
            await self._showing.keep()
            self._opened = await self._record.write(ending) == 1
        else:
            await self._touch()
        if not ending.failed:
            await self._checkpoints.write(working, None)
        elif self._checkpoints.written or self._showing.made:
            await self._checkpoints.close_exchange()

    async def finish(self, ending: Ending) -> None:
        """Name the conversation where this exchange opened it."""
        if not self._opened:
            return
        self._opened = False
        conversation = self._conversation
        title = await title_of(
            self._spec, conversation, self._question, ending.answer, self._message, self._run
        )
        if not title:
            return
        try:
            await conversation.memory.set_title(
                conversation.thread, title, context=conversation.context
            )
        except StoreError as error:
            self._tell("the title could not be stored", str(error))
            return
        await self._events.emit(
            "thread_title", max(1, ending.iterations), title=title, thread=self.name
        )

    async def _touch(self) -> None:
        """Have the thread listed, and known to be its user's, before anything of it is stored."""
        if not self._touched:
            await self._conversation.memory.touch(
                self._conversation.place, context=self._conversation.context
            )
            self._touched = True

    def _tell(self, what: str, error: str) -> None:
        place = self._conversation.place
        _log.error(
            what, block=self._spec.label, agent=place.agent, thread=place.thread, error=error
        )
        if self._run.trace is not None:
            attrs = {"block": self._spec.address, "what": what, "reason": error}
            self._run.trace.write(
                "agent.memory-failed", self._message, flow=self._run.flow, attrs=attrs
            )


def _text(entry: Entry) -> str:
    """What a user turn says, without its attachments."""
    blocks = [block["text"] for block in entry.message["content"] if block.get("type") == "text"]
    return "\n".join(blocks)
