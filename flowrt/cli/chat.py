"""`flowrt chat`: a conversation in the terminal."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from typing import Any

from flowrt.cli.exits import DONE, say
from flowrt.cli.keyboard import GateKeeper, Keyboard
from flowrt.llm.model import Delta
from flowrt.service import Result, Service

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


def chat_command(
    config: str,
    flow: str | None,
    thread: str,
    user: str | None,
    storage: str | None,
    env_file: str | None,
) -> int:
    """Read lines until the end of input or `/quit`; each is a message on the thread."""
    service = Service.load(config, storage=storage, env_file=env_file)
    asyncio.run(_converse(service, flow, thread, user))
    return DONE


async def _converse(service: Service, flow: str | None, thread: str, user: str | None) -> None:
    body = {"threadId": thread, **({"userId": user} if user else {})}
    keyboard = Keyboard()
    gates = GateKeeper(keyboard, service.live)
    screen = Screen(sys.stdout, color=sys.stdout.isatty(), gates=gates)
    async with service:
        while (line := await keyboard.line("> ")) is not None:
            if line.strip() in ("/quit", "/exit"):
                return
            if line.strip():
                await _turn(service, flow, {**body, "message": line}, screen)
                await gates.close()


async def _turn(service: Service, flow: str | None, data: dict[str, Any], screen: Screen) -> None:
    """One message. Ctrl-C stops the turn and not the program."""
    running = asyncio.ensure_future(service.invoke(flow, data, watcher=screen))
    loop = asyncio.get_running_loop()
    stop: Callable[[], object] = running.cancel
    _on_interrupt(loop, stop)
    try:
        screen.show(await running)
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        screen.note("stopped; this turn is not remembered")
    finally:
        _on_interrupt(loop, None)


def _on_interrupt(loop: asyncio.AbstractEventLoop, act: Callable[[], object] | None) -> None:
    if sys.platform == "win32":
        return  # no signal handlers in its event loop: Ctrl-C ends the program there
    if act is None:
        loop.remove_signal_handler(signal.SIGINT)
    else:
        loop.add_signal_handler(signal.SIGINT, act)


class Screen:
    """What the reader sees: text as it comes, tool calls as dim lines, the gauge at the end."""

    def __init__(self, out: Any, *, color: bool, gates: GateKeeper | None = None) -> None:
        self._out = out
        self._gates = gates
        self._color = color
        self._streamed = False
        self._gauge = ""
        self.delta = self._delta

    def event(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "turn_start":
                self._streamed = False
            case "tool_call":
                arguments = json.dumps(event.get("input"), ensure_ascii=False)
                self.note(f"{event['tool']} {_short(arguments)}")
            case "tool_authorization" if self._gates is not None:
                self.note(f"{event['tool']} waits to be allowed")
                self._gates.ask(event)
            case "tool_result" if event["isError"]:
                self.note(f"{event['tool']} failed: {_short(str(event['output']))}")
            case "turn_end" if "contextTokens" in event:
                used, most = event["contextTokens"], event["contextMaxTokens"]
                self._gauge = f"context {used:,} of {most:,} tokens ({used / most:.0%})"
            case "compaction_end":
                self.note(f"forgot {event['dropped']} messages ({event['strategy']})")

    def _delta(self, delta: Delta) -> None:
        if delta.kind == "text":
            self._out.write(delta.text)
            self._out.flush()
            self._streamed = True

    def show(self, result: Result) -> None:
        """The end of a turn."""
        if self._streamed:
            print(file=self._out)
        if result.error is not None:
            say(str(result.error))
        elif result.message is None:
            self.note("dropped")
        elif not self._streamed:
            print(json.dumps(result.message.body, ensure_ascii=False), file=self._out)
        if self._gauge:
            self.note(self._gauge)
        self._gauge, self._streamed = "", False

    def note(self, text: str) -> None:
        """A dim line."""
        if self._streamed:
            print(file=self._out)
            self._streamed = False
        print(f"{_DIM}{text}{_PLAIN}" if self._color else f"[{text}]", file=self._out, flush=True)


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:99] + "…"
