"""The tools of a run: the chains behind them, and the skills."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from flowrt.agent.events import AgentEvents
from flowrt.agent.gates import Denied, Gates
from flowrt.agent.memory_tools import NAMES, MemoryTools
from flowrt.agent.spec import AgentSpec
from flowrt.engine.run import Run
from flowrt.errors import FlowrtError, describe
from flowrt.memory.entry import error_result
from flowrt.message import Message, clean_text

Call = dict[str, Any]
Result = dict[str, Any]

LOAD_SKILL = "load_skill"

_NOTHING = "the tool returned nothing"
_EMPTY = {"[]": "an empty list: []", "{}": "an empty object: {}"}


class Toolbox:
    """Runs the calls of one turn and gives their results in the order of the calls.

    A single call works on the agent's own variables; several work each on a copy, up to
    `max_parallel` at once, and of those only the results and a stop come back (dialect 5.4). A tool
    that fails gives the model an error result; the others are not lost (FB-16). Nothing runs before
    all gated calls have their answer.
    """

    __slots__ = (
        "_denied",
        "_events",
        "_gates",
        "_memory_tools",
        "_message",
        "_run",
        "_scope",
        "_spec",
        "stopped",
    )

    def __init__(
        self,
        spec: AgentSpec,
        message: Message,
        run: Run,
        events: AgentEvents,
        gates: Gates,
        scope: str,
        memory_tools: MemoryTools | None = None,
    ) -> None:
        self._spec = spec
        self._message = message
        self._run = run
        self._events = events
        self._gates = gates
        self._denied: dict[str, Denied] = {}
        self._scope = scope
        self._memory_tools = memory_tools
        self.stopped = False

    async def run(self, calls: list[Call], iteration: int) -> list[Result]:
        """The results of the calls, one for each, in the same order."""
        for call in calls:
            await self._events.emit(
                "tool_call",
                iteration,
                tool=call["name"],
                toolCallId=call["id"],
                input=call.get("input"),
            )
        self._denied = await self._gates.check(calls, iteration)
        if len(calls) == 1 or self._spec.max_parallel <= 1:
            return [await self._one(call, iteration, self._on_shared) for call in calls]
        gate = asyncio.Semaphore(self._spec.max_parallel)

        async def gated(call: Call) -> Result:
            async with gate:
                return await self._one(call, iteration, self._on_copy)

        return list(await asyncio.gather(*(gated(call) for call in calls)))

    async def _one(
        self, call: Call, iteration: int, execute: Callable[[Call], Awaitable[str]]
    ) -> Result:
        try:
            text, failed = await execute(call), False
        except FlowrtError as error:
            text, failed = describe(error), True
        except asyncio.CancelledError:
            # A tool whose own work was cancelled failed; a run that is cancelled ends (FB-07).
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
            text, failed = "the tool was cancelled", True
        result = error_result(call["id"], text) if failed else _result(call["id"], text)
        await self._events.emit(
            "tool_result",
            iteration,
            tool=call["name"],
            toolCallId=call["id"],
            output=_decoded(text),
            isError=failed,
        )
        return result

    async def _on_shared(self, call: Call) -> str:
        branch = self._message.scoped()
        try:
            return await self._execute(call, branch)
        finally:
            self._message.replace_vars(
                {name: v for name, v in branch.vars.items() if name not in _TOOL_VARS}
                | {name: v for name, v in self._message.vars.items() if name in _TOOL_VARS}
            )

    async def _on_copy(self, call: Call) -> str:
        return await self._execute(call, self._message.clone())

    async def _execute(self, call: Call, branch: Message) -> str:
        if call["id"] in self._denied:
            raise self._denied[call["id"]]
        name, arguments = call["name"], call.get("input")
        if name == LOAD_SKILL and self._spec.skills:
            return self._load_skill(arguments)
        if name in NAMES and self._memory_tools is not None:
            return await self._memory_tools.call(name, arguments)
        tool = self._spec.tools.get(name)
        if tool is None:
            raise FlowrtError(f'unknown tool "{name}"')
        if not isinstance(arguments, dict):
            raise FlowrtError(f"invalid arguments: expected an object, got {arguments!r}")
        branch.body = arguments
        branch.raw = False
        branch.update(
            {
                "toolName": name,
                "toolCallId": call["id"],
                "toolScope": f"{self._scope}/{name}",
            }
        )
        result = await tool.chain.run(branch, self._run)
        if result is None:
            raise FlowrtError("tool produced no result")
        self.stopped = self.stopped or result.stop
        return result_text(result)

    def _load_skill(self, arguments: Any) -> str:
        name = arguments.get("name") if isinstance(arguments, dict) else None
        skill = self._spec.skills.get(str(name))
        if skill is None:
            known = ", ".join(self._spec.skills)
            raise FlowrtError(f"unknown skill {name!r}; the skills are {known}")
        return skill.template.render(self._message)


_TOOL_VARS = frozenset({"toolName", "toolCallId", "toolScope"})


def result_text(message: Message) -> str:
    """What a tool's result tells the model: its body as JSON; never empty (FB-12)."""
    body = message.body
    if message.raw and isinstance(body, dict):
        return str(body.get("rawData") or _NOTHING)
    if body is None or body == "":
        return _NOTHING
    text = json.dumps(body, ensure_ascii=False)
    return f"the tool returned {_EMPTY[text]}" if text in _EMPTY else text


def _result(call_id: str, text: str) -> Result:
    return {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": clean_text(text) if text.strip() else _NOTHING,
    }


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
