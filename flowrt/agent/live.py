"""Runs that are under way on a conversation, so that others can reach them.

A conversation is a tier and a thread. `threadPolicy: merge` hands a message to the live run,
`stopWhen` stops it and `authorizeId` answers its gated calls; where the service has a `Control`,
also in another process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from flowrt.agent.gates import Decisions
from flowrt.engine.control import Alone, Control

T = TypeVar("T")


class RunStopped(Exception):
    """The run was asked to stop; not a failure. The text is the reason."""


class LiveRun:
    """One run that holds a conversation. `address` is the block that runs it.

    A run inside a tool of another one, on its conversation, shares that one's `decisions`: messages
    to the conversation reach the outer run.
    """

    __slots__ = (
        "_closed",
        "_handed_over",
        "_holding_back",
        "_in_tools",
        "_work",
        "address",
        "conversation",
        "decisions",
        "stop_reason",
    )

    def __init__(self, address: str, conversation: str, decisions: Decisions | None = None) -> None:
        self.address = address
        self.conversation = conversation
        self.decisions = decisions or Decisions()
        self.stop_reason = ""
        self._handed_over: list[str] = []
        self._work: asyncio.Task[Any] | None = None
        self._in_tools = False
        self._closed = False
        self._holding_back = False

    def hand_over(self, text: str) -> bool:
        """Give the run another user message; False where it has its answer and takes no more.

        Blank text is accepted and ignored.
        """
        if self._closed:
            return False
        if text.strip():
            self._handed_over.append(text)
        return True

    @contextmanager
    def holding_back(self) -> Iterator[None]:
        """Keep what is handed over for an exchange that follows the one under way."""
        self._holding_back = True
        try:
            yield
        finally:
            self._holding_back = False

    def close(self) -> list[str]:
        """Take no more messages; returns what was handed over and not taken."""
        self._closed = not self._holding_back
        return self.take()

    def take(self) -> list[str]:
        """What was handed over since the last call."""
        if self._holding_back:
            return []
        taken, self._handed_over = self._handed_over, []
        return taken

    @property
    def waiting(self) -> bool:
        """Whether something was handed over and not taken yet."""
        return bool(self._handed_over) and not self._holding_back

    def stop(self, reason: str, *, hard: bool = False) -> None:
        """End the run soon. A model call is cut off at once, running tools only where `hard`.

        What waits to be allowed waits no longer.
        """
        self.stop_reason = self.stop_reason or reason
        if self._work is not None and (hard or not self._in_tools):
            self._work.cancel()
        elif not hard:
            self.decisions.close()

    def check(self) -> None:
        """Raise `RunStopped` where the run was asked to stop."""
        if self.stop_reason:
            raise RunStopped(self.stop_reason)

    async def guard(self, work: Coroutine[Any, Any, T], *, tools: bool = False) -> T:
        """Await `work`, which `stop` may cut off with `RunStopped`.

        A cancellation of the run itself stays a cancellation: the two must not be mixed up (FB-07).
        """
        task: asyncio.Task[T] = asyncio.ensure_future(work)
        self._work = task
        self._in_tools = tools
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self.stop_reason and current is not None and not current.cancelling():
                raise RunStopped(self.stop_reason) from None
            raise
        finally:
            self._work = None


class LiveRuns:
    """The live runs of one service, by conversation: those here, and the way to those elsewhere."""

    def __init__(self, control: Control | None = None) -> None:
        self._runs: dict[str, LiveRun] = {}
        self._control = control or Alone()

    def get(self, conversation: str) -> LiveRun | None:
        """The run of this process that works this conversation now, or will next."""
        return self._runs.get(conversation)

    async def be_reachable(self) -> None:
        """Have other processes reach the runs here."""
        await self._control.serve(self._take)

    async def stop(self, conversation: str, reason: str) -> bool:
        """Stop the run on a conversation; whether there was one."""
        stopped = self._stop(conversation, reason)
        # Also then: the run here may be one that waits for the one elsewhere.
        question = {"do": "stop", "conversation": conversation, "reason": reason}
        return await self._control.ask(question) or stopped

    async def decide(self, conversation: str, authorization: str, allowed: bool) -> bool:
        """Answer a gated call of the run on a conversation; False where none waits for it."""
        if self._decide(conversation, authorization, allowed):
            return True
        question = {"do": "decide", "conversation": conversation}
        return await self._control.ask(question | {"id": authorization, "allowed": allowed})

    def hand_over(self, conversation: str, address: str, *texts: str) -> bool:
        """Give messages to the run of a block here; False where it takes none of them."""
        run = self._runs.get(conversation)
        if run is None or run.address != address:
            return False
        return all(run.hand_over(text) for text in texts)

    async def hand_over_elsewhere(self, conversation: str, address: str, *texts: str) -> bool:
        """Give messages to the run of a block in another process; all or none of them."""
        question = {"do": "hand over", "conversation": conversation}
        return await self._control.ask(question | {"address": address, "texts": list(texts)})

    def _take(self, question: dict[str, Any]) -> bool:
        """Do what another process asks for."""
        conversation = question["conversation"]
        match question["do"]:
            case "stop":
                return self._stop(conversation, question["reason"])
            case "decide":
                return self._decide(conversation, question["id"], question["allowed"])
            case "hand over":
                return self.hand_over(conversation, question["address"], *question["texts"])
        # A replica of a newer version.
        return False

    def _stop(self, conversation: str, reason: str) -> bool:
        run = self._runs.get(conversation)
        if run is not None:
            run.stop(reason)
        return run is not None

    def _decide(self, conversation: str, authorization: str, allowed: bool) -> bool:
        run = self._runs.get(conversation)
        return run is not None and run.decisions.answer(authorization, allowed)

    def answer(self, authorization: str, allowed: bool) -> bool:
        """Answer a gated call of whichever run waits for it; False where none does."""
        return any(run.decisions.answer(authorization, allowed) for run in self._runs.values())

    def offer(self, run: LiveRun) -> None:
        """Make a run reachable that waits for its conversation, where no other is."""
        self._runs.setdefault(run.conversation, run)

    def add(self, run: LiveRun) -> None:
        """Make a run reachable."""
        self._runs[run.conversation] = run

    def remove(self, run: LiveRun) -> None:
        """A run ended; another one on the conversation stays."""
        if self._runs.get(run.conversation) is run:
            del self._runs[run.conversation]
