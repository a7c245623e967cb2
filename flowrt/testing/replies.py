"""What the fake APIs are told to answer, and gates that hold an answer back."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from flowrt.llm.scripted import ScriptedReply


class Gate:
    """Holds a reply back until the test has seen the request come in and lets the answer go.

    One gate serves one call: `await gate.reached()` (or `wait()` outside of a loop), then `open()`.
    """

    def __init__(self) -> None:
        self._reached: Future[None] = Future()
        self._opened: Future[None] = Future()

    async def reached(self) -> None:
        """Wait until a request is being held."""
        await asyncio.shield(asyncio.wrap_future(self._reached))

    def wait(self, timeout: float = 10.0) -> None:
        """The same without an event loop. Raises `TimeoutError` after `timeout` seconds."""
        self._reached.result(timeout)

    def open(self) -> None:
        """Let the held reply go, or the next that comes here pass."""
        if not self._opened.done():
            self._opened.set_result(None)

    async def pass_through(self) -> None:
        """The server's side: say that the request is here, and wait."""
        if not self._reached.done():
            self._reached.set_result(None)
        await asyncio.shield(asyncio.wrap_future(self._opened))


class FakeReply(ScriptedReply):
    """A `ScriptedReply` with what only happens on a network; `error` is the HTTP status."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        arbitrary_types_allowed=True,
    )

    headers: dict[str, str] = Field(
        default_factory=dict, description="Response headers, such as `retry-after`."
    )
    stream_error: int | None = Field(
        default=None,
        ge=0,
        description="Send an error event after so many events of the stream.",
    )
    disconnect: int | None = Field(
        default=None,
        ge=0,
        description="Break the connection after so many events, or before the JSON message.",
    )
    hold: Gate | None = Field(default=None, description="Wait until the test opens the gate.")
    hold_after: int = Field(default=0, ge=0, description="Events of a stream sent before that.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        given = (self.text, self.content, self.error, self.thinking, self.stop_reason)
        network = (self.disconnect, self.stream_error)
        if not self.tool_calls and all(value is None for value in (*given, *network)):
            raise ValueError(
                "a reply needs text, toolCalls, content, thinking, error or disconnect"
            )
        return self


def parse_reply(entry: Any) -> FakeReply:
    """A reply from its short forms: a text, or a mapping with the fields of `FakeReply`."""
    if isinstance(entry, FakeReply):
        return entry
    if isinstance(entry, str):
        return FakeReply(text=entry)
    if isinstance(entry, ScriptedReply):
        return FakeReply(**entry.model_dump())
    return FakeReply.model_validate(entry)
