"""An agent: which conversation a message belongs to, and whose turn it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from flowrt.agent.agent_keeper import AgentKeeper
from flowrt.agent.answer import fold_answer
from flowrt.agent.claim import Claim, Held, claim
from flowrt.agent.conversation import Conversation, open_conversation
from flowrt.agent.events import AgentEvents
from flowrt.agent.keeper import Keeper, ThreadKeeper
from flowrt.agent.live import LiveRun, LiveRuns
from flowrt.agent.loop import Loop
from flowrt.agent.memory_tools import MemoryTools
from flowrt.agent.prompt import opening_turn
from flowrt.agent.session import Session
from flowrt.agent.spec import AgentSpec, MemorySpec
from flowrt.engine.run import Run
from flowrt.errors import AgentError, ModelError
from flowrt.ids import new_id
from flowrt.memory.agent_memory import working_key
from flowrt.memory.transcript import PREFIX, Thread
from flowrt.message import Message
from flowrt.observe.log import get_logger

AGE_LIMIT = 900.0
"""Seconds after which a run is ended: a tool that never returns must not hold a thread for ever."""

_log = get_logger("flowrt.agent")


@dataclass(frozen=True, slots=True)
class _Claimed:
    """A conversation that a run holds. `name` is the thread, `scope` begins its `toolScope`s.

    `blind` says why the claim could not be made: the store that keeps it is gone.
    """

    live: LiveRun
    name: str = ""
    scope: str = ""
    blind: str = ""


class Agent:
    """Runs an `AgentSpec` on messages. Built once; nothing of a run is kept on it."""

    __slots__ = ("_spec",)

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec

    async def run(self, message: Message, run: Run) -> Message | None:
        """Answer a message, as a turn of its conversation where the agent has memory."""
        memory = self._spec.memory
        if memory is None:
            opening = opening_turn(message, self._spec.opening)
            claimed = _Claimed(LiveRun(self._spec.address, ""), scope=f"run-{new_id()}")
            return await self._work(message, run, claimed, opening)
        name = memory.thread.key(message, "ai-agent memory threadId")
        key, runs = _key(memory, name), run.runtime.live
        conversation = f"{memory.tier}/{key}"
        if memory.stop_when is not None and memory.stop_when.test(message):
            await runs.stop(conversation, "stopped by a message")
            return _ended(message)
        if await self._answers(message, runs, conversation):
            return _ended(message)
        # Not before: a message that only stops a run, or answers it, has nothing to say.
        opening = opening_turn(message, self._spec.opening)
        wanted = Claim(run.storage.space(memory.tier), key, conversation, self._spec.address)
        text = partial(self._handed_over, message, opening) if memory.policy == "merge" else None
        # The text last: files are read for it.
        if text and runs.get(conversation) and runs.hand_over(conversation, wanted.address, text()):
            return _ended(message)
        self._warn_of_another(memory, runs.get(conversation), name)
        async with self._claim(run, memory, wanted, text) as held:
            if held is None:
                return _ended(message)
            scope = f"{name}/{self._spec.fingerprint}"
            claimed = _Claimed(held.live, name, scope, held.blind)
            return await self._work(message, run.within(conversation), claimed, opening)

    async def _work(
        self, message: Message, run: Run, claimed: _Claimed, opening: str
    ) -> Message | None:
        events = AgentEvents(self._spec.events, message, run)
        live = claimed.live
        keeper, conversation = self._keeper(message, run, events, claimed)
        session = Session(self._spec, message, run, events, keeper)
        tools = MemoryTools(conversation, session.source) if conversation is not None else None
        work = (run, session, events, live, claimed.scope, tools)
        limit = asyncio.get_running_loop().call_later(
            AGE_LIMIT, lambda: live.stop(f"the run is older than {AGE_LIMIT:.0f} s", hard=True)
        )
        try:
            # Before anything is read: what no model can be shown fails the run here.
            files = self._spec.media.read(message, "ai-agent")
            await session.open(self._mark(run, claimed.name, opening))
            if answer := session.answered:
                return await self._answered_before(message, events, answer)
            if session.comes_again:
                session.take_up()
                return await Loop(self._spec, message, *work).run()
            if session.interrupted and await self._finish_interrupted(message, *work):
                message.stop = True
                return message
            session.begin(opening, files)
            return await Loop(self._spec, message, *work).run()
        finally:
            limit.cancel()
            current = asyncio.current_task()
            cancelled = current is not None and current.cancelling()
            await session.abandon("cancelled" if cancelled else "failed")

    def _mark(self, run: Run, thread: str, opening: str) -> str:
        """What tells this question from others, and is the same when its message comes again."""
        if run.delivery is None or self._spec.memory is None:
            return ""
        return run.delivery.mark(self._spec.address, thread, opening)

    async def _answered_before(self, message: Message, events: AgentEvents, answer: str) -> Message:
        """The answer again, to a message whose process died after it was stored."""
        _log.info("a message that comes again was answered before", block=self._spec.label)
        await events.emit("done", 1, text=answer)
        message.body = fold_answer(answer, message.body)
        message.raw = False
        return message

    def _keeper(
        self, message: Message, run: Run, events: AgentEvents, claimed: _Claimed
    ) -> tuple[Keeper | None, Conversation | None]:
        memory = self._spec.memory
        if memory is None:
            return None, None
        keeper: Keeper
        thread = Thread(run.storage.space(memory.tier), claimed.name)
        remember = memory.remember
        if remember is None:
            keeper = ThreadKeeper(thread)
            return keeper, None
        conversation = open_conversation(
            remember, claimed.name, memory.volatile, message, run, self._spec.label
        )
        keeper = AgentKeeper(
            self._spec, remember, conversation, thread, message, run, events, blind=claimed.blind
        )
        return keeper, conversation if remember.facts else None

    async def _finish_interrupted(
        self,
        message: Message,
        run: Run,
        session: Session,
        events: AgentEvents,
        live: LiveRun,
        scope: str,
        tools: MemoryTools | None,
    ) -> bool:
        """Finish the exchange of a run that died; whether the run is to stop with it.

        Its answer goes to the conversation; who asked is not there any more. A failure ends that
        exchange, not the one that follows: a question that cannot be answered must not hold the
        thread for ever.
        """
        session.take_up()
        await events.emit("signal", 1, signal="resumed", text="finishing an interrupted run")
        spec = replace(self._spec, default=None)
        own = message.clone()
        try:
            with live.holding_back():
                result = await Loop(spec, own, run, session, events, live, scope, tools).run()
        except (AgentError, ModelError) as error:
            _log.warning(
                "an interrupted run could not be finished",
                block=self._spec.label,
                error=str(error),
            )
            await session.abandon("failed")
            return False
        return result is not None and result.stop

    async def _answers(self, message: Message, runs: LiveRuns, conversation: str) -> bool:
        """Whether the message answers a gated call; one that comes too late does as well."""
        gates = self._spec.gates
        authorization = gates.answered(message) if gates is not None else ""
        if gates is None or not authorization:
            return False
        allowed = gates.allows(message)
        if not await runs.decide(conversation, authorization, allowed):
            _log.info(
                "an answer found no call that waits for it",
                block=self._spec.label,
                answered=authorization,
                allowed=allowed,
            )
        return True

    def _handed_over(self, message: Message, opening: str) -> str:
        """What a live run is given of a message."""
        files = self._spec.media.read(message, "ai-agent")
        if files.told:
            # A run takes files with its opening turn only; the model can at least ask for them.
            opening += f"\n[came with this message and cannot be shown now: {files.told}]"
        return opening

    def _warn_of_another(self, memory: MemorySpec, running: LiveRun | None, name: str) -> None:
        # Blocks of one agentId are one agent and mean to share.
        if memory.remember is None and running and running.address != self._spec.address:
            _log.warning(
                "two blocks work one conversation and share its transcript; "
                "give one of them another memoryThreadId, such as vars.toolScope",
                block=self._spec.address,
                other=running.address,
                thread=name,
            )

    def _claim(
        self, run: Run, memory: MemorySpec, wanted: Claim, text: Callable[[], str] | None
    ) -> AbstractAsyncContextManager[Held | None]:
        runs: LiveRuns = run.runtime.live
        if wanted.conversation in run.claims:
            # An enclosing agent holds it and waits for this one: waiting for it would never end.
            outer = runs.get(wanted.conversation)
            decisions = outer.decisions if outer else None
            return nullcontext(Held(LiveRun(wanted.address, wanted.conversation, decisions)))
        return claim(
            wanted,
            runs,
            wait=0.0 if memory.policy == "reject" else None,
            text=text,
            may_be_blind=memory.remember is not None,
            turn=run.delivery.turn if run.delivery and memory.policy == "queue" else None,
        )


def _key(memory: MemorySpec, thread: str) -> str:
    """What a conversation is stored and claimed under."""
    if memory.remember is None:
        return PREFIX + thread
    return working_key(memory.remember.agent, thread)


def _ended(message: Message) -> Message:
    """The message of an invocation that only reached a live run: `{}`, and the flow ends."""
    message.body = {}
    message.raw = False
    message.stop = True
    return message
