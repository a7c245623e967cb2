"""Gates: calls of tools that wait until somebody allows them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flowrt.errors import ExpressionError, FlowError
from flowrt.ids import new_id
from flowrt.observe.log import get_logger

if TYPE_CHECKING:
    from flowrt.agent.events import AgentEvents
    from flowrt.agent.live import LiveRun
    from flowrt.agent.spec import AgentSpec
    from flowrt.engine.run import Run
    from flowrt.expr import Expression
    from flowrt.message import Message

_log = get_logger("flowrt.agent.gates")


@dataclass(frozen=True, slots=True)
class GateSpec:
    """How a block learns of answers: `id` names the gated call, `allow` is the answer.

    `timeout` is the longest wait for one, in seconds.
    """

    id: Expression
    allow: Expression
    timeout: float

    def answered(self, message: Message) -> str:
        """The authorization that `message` answers, empty where it answers none.

        Raises `ExpressionError` where the id is no text.
        """
        value = self.id.value(message)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ExpressionError(
                f"ai-agent authorizeId evaluates to {value!r}; it must be the text of an "
                "authorizationId, or empty for a message that answers none"
            )
        return value.strip()

    def allows(self, message: Message) -> bool:
        """Whether `message` says yes: only true does, and an expression that fails says no."""
        try:
            return self.allow.value(message) is True
        except ExpressionError as error:
            _log.warning("authorizeAllow failed, which denies the call", error=str(error))
            return False


class Denied(FlowError):
    """A call that may not run. The text is what the model is told, as JSON."""

    def __init__(self, reason: str) -> None:
        super().__init__(json.dumps({"authorized": False, "reason": reason}, ensure_ascii=False))


class Decisions:
    """The answers that the gated calls of one run wait for."""

    __slots__ = ("_closed", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._closed = False

    @contextmanager
    def expect(self) -> Iterator[tuple[str, asyncio.Future[bool]]]:
        """A new id and the answer to it, which can be given until the context ends."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        authorization = f"auth_{new_id()}"
        if self._closed:
            answer.set_result(False)
        self._waiting[authorization] = answer
        try:
            yield authorization, answer
        finally:
            del self._waiting[authorization]

    def answer(self, authorization: str, allowed: bool) -> bool:
        """Answer a call; False where none waits under this id, or it has its answer."""
        waiting = self._waiting.get(authorization)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(allowed)
        return True

    def close(self) -> None:
        """Deny what waits, and whatever would wait from now on."""
        self._closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(False)


class Gates:
    """Asks for the gated calls of one run, one after the other."""

    __slots__ = ("_events", "_live", "_message", "_run", "_spec")

    def __init__(
        self, spec: AgentSpec, message: Message, run: Run, events: AgentEvents, live: LiveRun
    ) -> None:
        self._spec = spec
        self._message = message
        self._run = run
        self._events = events
        self._live = live

    async def check(self, calls: list[dict[str, Any]], iteration: int) -> dict[str, Denied]:
        """The calls that may not run, by id, each with what the model is told.

        Raises `RunStopped` where the run is stopped while it waits.
        """
        denied: dict[str, Denied] = {}
        for call in calls:
            if refusal := await self._check(call, iteration):
                denied[call["id"]] = refusal
        return denied

    async def _check(self, call: dict[str, Any], iteration: int) -> Denied | None:
        tool = self._spec.tools.get(call["name"])
        gates = self._spec.gates
        # Arguments that are no object never reach the tool: there is nothing to allow.
        if gates is None or tool is None or tool.authorize is None:
            return None
        if not isinstance(call.get("input"), dict):
            return None
        try:
            if not self._gated(tool.authorize, call):
                return None
        except ExpressionError as error:
            _log.error("a tool's authorize failed: the call is denied",
                       block=self._spec.label, tool=call["name"], error=str(error))  # fmt: skip
            return Denied("it could not be determined whether this call needs approval")
        allowed = await self._ask(call, gates.timeout, iteration)
        if allowed is None:
            return Denied(f"nobody answered within {gates.timeout:g} seconds")
        return None if allowed else Denied("the call was not approved")

    def _gated(self, authorize: Expression, call: dict[str, Any]) -> bool:
        about = {"name": call["name"], "id": call["id"]}
        return authorize.test(self._message, {"input": call["input"], "tool": about})

    async def _ask(self, call: dict[str, Any], patience: float, iteration: int) -> bool | None:
        """The answer, or None where none came in time."""
        self._live.check()
        deadline = self._run.clock.monotonic() + patience
        # An events chain may answer while it is told, so the call waits before anybody knows.
        with self._live.decisions.expect() as (authorization, answer):
            await self._events.emit(
                "tool_authorization",
                iteration,
                tool=call["name"],
                toolCallId=call["id"],
                authorizationId=authorization,
                input=call["input"],
                expiresInSeconds=int(patience),
            )
            self._events.check()
            await self._wait(answer, deadline)
            if answer.cancelled():
                _log.info("nobody answered a gated call in time",
                          block=self._spec.label, tool=call["name"])  # fmt: skip
                return None
            allowed = answer.result()
        self._live.check()
        await self._events.emit(
            "signal", iteration, signal="authorize", authorizationId=authorization, allowed=allowed
        )
        return allowed

    async def _wait(self, answer: asyncio.Future[bool], deadline: float) -> None:
        """Wait for the answer, which the deadline cancels where it is first."""
        timer = asyncio.create_task(self._expire(answer, deadline))
        try:
            await asyncio.wait([answer])
        finally:
            timer.cancel()

    async def _expire(self, answer: asyncio.Future[bool], deadline: float) -> None:
        # Counted when the task begins: the clock may have moved on since it was made.
        clock = self._run.clock
        await clock.sleep(max(0.0, deadline - clock.monotonic()))
        answer.cancel()
