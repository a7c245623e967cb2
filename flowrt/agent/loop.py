"""The agent loop: ask the model, run the tools it calls, until it answers."""

from __future__ import annotations

from typing import Any

from flowrt.agent.answer import fold_answer
from flowrt.agent.events import AgentEvents
from flowrt.agent.gates import Gates
from flowrt.agent.keeper import Ending
from flowrt.agent.live import LiveRun, RunStopped
from flowrt.agent.media import Produced
from flowrt.agent.memory_tools import MemoryTools
from flowrt.agent.session import Session
from flowrt.agent.spec import AgentSpec
from flowrt.agent.toolbox import Toolbox
from flowrt.agent.turn import call_model
from flowrt.engine.run import Run
from flowrt.errors import AgentError, ModelError, PromptTooLong, describe
from flowrt.llm.model import Reply
from flowrt.memory.entry import error_result, results_entry
from flowrt.message import Message
from flowrt.observe.log import get_logger

MAX_CUT_OFF = 2
"""How often in a run the model is told that its reply was cut off before the run gives up."""

_CUT_OFF = (
    "not run: the reply was cut off by the token limit before the call was complete. "
    "Make the call again with shorter arguments, or in several calls."
)

_STOP_REASONS = {
    "refusal": "refused",
    "max_tokens": "max tokens",
    "max_iterations": "max iterations",
}
"""How the record of an unanswered question says what `vars.guardrail.reason` says."""

_ERROR_WORDS = {
    "refusal": "model refused and no guardrail configured",
    "max_tokens": "max tokens",
    "max_iterations": "exceeded max iterations",
}
"""What suites and `error:` chains written for Octo look for in the error text (dialect 5.4)."""

_log = get_logger("flowrt.agent")


class Loop:
    """One run of an agent. `scope` is the prefix of the tools' `toolScope`."""

    def __init__(
        self,
        spec: AgentSpec,
        message: Message,
        run: Run,
        session: Session,
        events: AgentEvents,
        live: LiveRun,
        scope: str,
        memory_tools: MemoryTools | None = None,
    ) -> None:
        self._spec = spec
        self._message = message
        self._run = run
        self._session = session
        self._events = events
        self._live = live
        gates = Gates(spec, message, run, events, live)
        self._tools = Toolbox(spec, message, run, events, gates, scope, memory_tools)
        self._produced = Produced(spec.media.response, message, spec.label)
        self._cut_off = 0

    async def run(self) -> Message | None:
        """Work until the model answers; the answer becomes the body.

        Raises `ModelError` where a call fails for good and `AgentError` where no answer comes and
        there is no `default` chain.
        """
        iteration = 0
        try:
            for iteration in range(1, self._spec.max_iterations + 1):
                reply = await self._turn(iteration)
                if reply.stop_reason == "refusal":
                    return await self._fallback("refusal", "the model refused", iteration)
                if not reply.tool_calls:
                    if self._live.waiting:
                        continue
                    return await self._answer(reply, iteration)
                if not await self._work(reply, iteration):
                    return await self._fallback(
                        "max_tokens", "tool calls were cut off by the token limit", iteration
                    )
        except RunStopped as stopped:
            return await self._halt(str(stopped), iteration)
        limit = self._spec.max_iterations
        return await self._fallback(
            "max_iterations", f"no answer after {limit} model calls (maxIterations)", iteration
        )

    async def _turn(self, iteration: int) -> Reply:
        """One model call, with whatever was handed over before it."""
        for text in self._live.take():
            self._session.say(text)
            await self._events.emit("signal", iteration, signal="context", text=text)
        await self._session.fit(iteration)
        await self._events.emit("turn_start", iteration)
        self._check_stop()
        try:
            reply = await self._call(iteration)
        except ModelError as error:
            await self._events.emit("error", iteration, error=describe(error))
            raise
        self._session.add_reply(reply)
        self._produced.take(reply)
        await self._turn_end(reply, iteration)
        return reply

    async def _call(self, iteration: int) -> Reply:
        try:
            return await self._send(iteration)
        except PromptTooLong:
            # The meter was wrong or the window is smaller than the budget: one cut, one retry.
            if not await self._session.fit(iteration, limit=self._session.shrunk_limit()):
                raise
        return await self._send(iteration)

    async def _send(self, iteration: int) -> Reply:
        stream = self._events.deltas(iteration)
        request = self._session.request()
        work = call_model(
            self._spec.model,
            request,
            self._run,
            self._message,
            block=self._spec.address,
            iteration=iteration,
            on_delta=stream,
        )
        try:
            reply = await self._live.guard(work)
        except BaseException:
            if stream is not None:
                stream.abandon()
            raise
        if stream is not None:
            await stream.drain()
        return reply

    async def _turn_end(self, reply: Reply, iteration: int) -> None:
        if not self._events.wanted("turn_end"):
            return
        usage = reply.usage
        gauge: dict[str, Any] = {}
        if usage is not None:
            gauge = {
                "usage": usage.to_json(),
                "contextTokens": usage.prompt_tokens + usage.output_tokens,
                "contextMaxTokens": self._spec.budget.limit,
            }
        await self._events.emit(
            "turn_end", iteration, text=reply.text, stopReason=reply.stop_reason, **gauge
        )

    async def _work(self, reply: Reply, iteration: int) -> bool:
        """Run the tools of a turn; False where its calls were cut off once too often."""
        calls = reply.tool_calls
        if reply.cut_off:
            # The arguments may be a valid prefix of what was meant: running them is worse than
            # not running them (FB-19).
            self._cut_off += 1
            self._session.add(results_entry([error_result(call["id"], _CUT_OFF) for call in calls]))
            return self._cut_off <= MAX_CUT_OFF
        self._check_stop()
        # Before the tools as well: a run that dies in one is to know which it had begun.
        await self._session.checkpoint(iteration)
        results = await self._live.guard(self._tools.run(calls, iteration), tools=True)
        self._session.add(results_entry(results))
        await self._session.checkpoint(iteration)
        if self._tools.stopped:
            raise RunStopped("a tool stopped the run")
        self._check_stop()
        return True

    def _check_stop(self) -> None:
        self._events.check()
        self._live.check()

    async def _answer(self, reply: Reply, iteration: int) -> Message:
        self._live.close()
        text = reply.text
        if reply.cut_off:
            _log.warning(
                "the answer was cut off by the token limit; raise maxTokens",
                block=self._spec.label,
            )
        if not text.strip():
            _log.warning("the model answered with nothing; the body stays", block=self._spec.label)
        await self._events.emit("done", iteration, text=text)
        await self._session.save(Ending(iteration, text, "" if text.strip() else "no text"))
        self._message.body = fold_answer(text, self._message.body)
        self._message.raw = False
        if self._events.stopped:
            self._message.stop = True
        return self._message

    async def _halt(self, reason: str, iteration: int) -> Message:
        """A stop: what happened is kept, open calls are closed, the flow ends here."""
        leftover = tuple(self._live.close())
        await self._events.emit("signal", max(1, iteration), signal="stop", text=reason)
        ending = Ending(iteration, stop_reason=reason, leftover=leftover)
        await self._session.save(ending, reason=f"stopped: {reason}")
        self._message.stop = True
        return self._message

    async def _fallback(self, reason: str, text: str, iteration: int) -> Message | None:
        """No answer: the `default` chain with `vars.guardrail`, or an error."""
        _log.warning("an agent run ended without an answer", block=self._spec.label, reason=text)
        await self._events.emit("guardrail", iteration, reason=text)
        leftover = tuple(self._live.close())
        for unanswered in leftover:
            await self._events.emit("signal", iteration, signal="unanswered", text=unanswered)
        await self._session.save(
            Ending(iteration, stop_reason=_STOP_REASONS[reason], leftover=leftover)
        )
        if self._spec.default is None:
            words = _ERROR_WORDS[reason]
            raise AgentError(f"ai-agent: {words}: {text}, and no `default` flow takes over")
        self._message.set("guardrail", {"reason": reason, "text": text})
        return await self._spec.default.run(self._message, self._run)
