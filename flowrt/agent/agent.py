"""An agent: which conversation a message belongs to, and whose turn it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial

from flowrt.agent.claim import Conversation, claim
from flowrt.agent.events import AgentEvents
from flowrt.agent.live import LiveRun, LiveRuns
from flowrt.agent.loop import Loop
from flowrt.agent.prompt import opening_turn
from flowrt.agent.session import Session
from flowrt.agent.spec import AgentSpec
from flowrt.engine.run import Run
from flowrt.ids import new_id
from flowrt.memory.transcript import Thread
from flowrt.message import Message
from flowrt.observe.log import get_logger

AGE_LIMIT = 900.0
"""Seconds after which a run is ended: a tool that never returns must not hold a thread for ever."""

_log = get_logger("flowrt.agent")


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
            live = LiveRun(self._spec.address, "")
            return await self._work(message, run, live, None, f"run-{new_id()}", opening)
        name = memory.thread.key(message, "ai-agent memory threadId")
        tier = "user_volatile" if memory.volatile else "user"
        key, runs = f"{tier}/{name}", run.runtime.live
        if memory.stop_when is not None and memory.stop_when.test(message):
            await runs.stop(key, "stopped by a message")
            return _ended(message)
        if await self._answers(message, runs, key):
            return _ended(message)
        # Not before: a message that only stops a run, or answers it, has nothing to say.
        opening = opening_turn(message, self._spec.opening)
        text = partial(self._handed_over, message, opening) if memory.policy == "merge" else None
        # The text last: files are read for it.
        if text and runs.get(key) and runs.hand_over(key, self._spec.address, text()):
            return _ended(message)
        self._warn_of_another(runs.get(key), name)
        space = run.storage.space(tier)
        held = Conversation(space, name, key, self._spec.address)
        async with self._claim(held, run, text) as claimed:
            if claimed is None:
                return _ended(message)
            scope, thread = f"{name}/{self._spec.fingerprint}", Thread(space, name)
            return await self._work(message, run.within(key), claimed, thread, scope, opening)

    def _claim(
        self, conversation: Conversation, run: Run, text: Callable[[], str] | None
    ) -> AbstractAsyncContextManager[LiveRun | None]:
        runs: LiveRuns = run.runtime.live
        if conversation.key in run.claims:
            # An enclosing agent holds it and waits for this one: waiting for it would never end.
            outer = runs.get(conversation.key)
            decisions = outer.decisions if outer else None
            return nullcontext(LiveRun(self._spec.address, conversation.key, decisions))
        memory = self._spec.memory
        wait = 0.0 if memory is not None and memory.policy == "reject" else None
        return claim(conversation, runs, wait=wait, text=text)

    async def _work(
        self,
        message: Message,
        run: Run,
        live: LiveRun,
        thread: Thread | None,
        scope: str,
        opening: str,
    ) -> Message | None:
        events = AgentEvents(self._spec.events, message, run)
        session = Session(self._spec, message, run, events, thread)
        limit = asyncio.get_running_loop().call_later(
            AGE_LIMIT, lambda: live.stop(f"the run is older than {AGE_LIMIT:.0f} s", hard=True)
        )
        try:
            await session.open(opening, self._spec.media.read(message, "ai-agent"))
            return await Loop(self._spec, message, run, session, events, live, scope).run()
        finally:
            limit.cancel()

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

    def _warn_of_another(self, running: LiveRun | None, name: str) -> None:
        if running is not None and running.address != self._spec.address:
            _log.warning(
                "two blocks work one conversation and share its transcript; "
                "give one of them another memoryThreadId, such as vars.toolScope",
                block=self._spec.address,
                other=running.address,
                thread=name,
            )


def _ended(message: Message) -> Message:
    """The message of an invocation that only reached a live run: `{}`, and the flow ends."""
    message.body = {}
    message.raw = False
    message.stop = True
    return message
