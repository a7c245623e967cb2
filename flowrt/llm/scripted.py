"""A model that answers from a script: for tests, demos and benchmarks, in the process itself.

It is as strict as the real API: a request that breaks the provider's rules fails the test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from flowrt.clock import Clock, SystemClock
from flowrt.errors import (
    ModelError,
    ModelRefused,
    ModelUnavailable,
    PromptTooLong,
    RequestInvalid,
)
from flowrt.ids import new_id
from flowrt.llm.estimate import estimate_fixed, estimate_message
from flowrt.llm.model import Block, Delta, Reply, Request, Usage
from flowrt.llm.rules import check

SIGNATURE = "scripted-signature"

_LONGEST = 500  # characters of a message in an error
_PIECE = 12  # characters of a streamed piece


class _Entry(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class ScriptedCall(_Entry):
    """A tool call of a scripted reply. Without `id`, one is made."""

    name: str = Field(description="The tool.")
    input: dict[str, Any] = Field(default_factory=dict, description="The arguments.")
    id: str = Field(default="", description="The call's id; made where it is left out.")


class ScriptedUsage(_Entry):
    """Tokens that a scripted reply reports."""

    input_tokens: int = Field(default=0, description="Prompt tokens that were not cached.")
    output_tokens: int = Field(default=0, description="Tokens of the reply.")
    cached_tokens: int = Field(default=0, description="Prompt tokens read from the cache.")
    cache_write_tokens: int = Field(default=0, description="Prompt tokens written to the cache.")
    thinking_tokens: int = Field(default=0, description="Tokens of the reply that were thinking.")


class ScriptedReply(_Entry):
    """One entry of a script: what the model answers, or how it fails."""

    text: str | None = Field(default=None, description="The text of the reply.")
    tool_calls: list[ScriptedCall] = Field(
        default_factory=list, description="The tools the reply calls."
    )
    thinking: str | None = Field(default=None, description="A thinking block before the text.")
    content: list[dict[str, Any]] | None = Field(
        default=None, description="The reply's content blocks as they are, instead of the above."
    )
    stop_reason: str | None = Field(
        default=None, description="Why the reply ended; `tool_use` where it calls tools."
    )
    usage: ScriptedUsage | None = Field(
        default=None, description="Tokens reported; estimated where left out."
    )
    error: int | None = Field(
        default=None, ge=400, le=599, description="An HTTP status to fail with instead."
    )
    message: str | None = Field(default=None, description="The text of that failure.")
    delay: float = Field(default=0, ge=0, description="Seconds before the reply.")
    when: str | None = Field(
        default=None,
        description="A CEL condition over `request`; such entries may be used any number of times.",
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        given = (self.text, self.content, self.error, self.thinking, self.stop_reason)
        if not self.tool_calls and all(value is None for value in given):
            raise ValueError("an entry needs text, toolCalls, content, thinking or error")
        return self

    def blocks(self) -> list[Block]:
        """The content blocks of the reply."""
        if self.content is not None:
            return list(self.content)
        blocks: list[Block] = []
        if self.thinking is not None:
            blocks.append({"type": "thinking", "thinking": self.thinking, "signature": SIGNATURE})
        if self.text is not None:
            blocks.append({"type": "text", "text": self.text})
        for call in self.tool_calls:
            call_id = call.id or f"toolu_{new_id()[:24]}"
            blocks.append(
                {"type": "tool_use", "id": call_id, "name": call.name, "input": call.input}
            )
        return blocks

    @property
    def reason(self) -> str:
        """The stop reason, as the provider would give it."""
        calls = self.tool_calls or any(b.get("type") == "tool_use" for b in self.content or [])
        return self.stop_reason or ("tool_use" if calls else "end_turn")


class NoAnswer(ModelRefused):
    """Nothing in the script answers a request; the text shows it."""


REQUEST_FIELDS = ("system", "messages", "tools", "lastUserText", "text", "tokens", "purpose")
"""What a condition can ask of a request."""

Matcher = Callable[[dict[str, Any]], bool]


class ScriptedModel:
    """A `ChatModel` that plays a script and records what it was asked in `requests`.

    An entry with `when` answers every request for which its condition holds, in file order; the
    others answer once each, in order, whatever none of the conditions took. `matchers` are the
    compiled conditions, None for an entry without, and `fields` what they ask of a request: the
    text of a long conversation is not put together for a condition that looks at its end. With
    `repeat` the others begin again when they are used up. A request that nothing answers is a
    `ModelRefused` that shows it.
    """

    provider = "SCRIPTED"

    def __init__(
        self,
        replies: Sequence[ScriptedReply],
        *,
        name: str = "scripted",
        matchers: Sequence[Matcher | None] = (),
        clock: Clock | None = None,
        fields: Iterable[str] = REQUEST_FIELDS,
        repeat: bool = False,
        keep_requests: int = 1000,
    ) -> None:
        self.name = name
        self.requests: list[Request] = []
        self._keep = keep_requests
        self._clock = clock or SystemClock()
        conditions = [*matchers, *[None] * (len(replies) - len(matchers))]
        pairs = list(zip(replies, conditions, strict=True))
        self._conditional = [(reply, when) for reply, when in pairs if when is not None]
        self._queue = [reply for reply, when in pairs if when is None]
        self._fields = tuple(fields)
        self._repeat = repeat
        self._next = 0

    def add(self, *replies: ScriptedReply) -> None:
        """Answer further requests with these, in order."""
        self._queue += replies

    async def complete(
        self, request: Request, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply:
        """The next scripted reply. Raises what a real model would raise for a scripted `error`."""
        if len(self.requests) < self._keep:
            self.requests.append(request)
        violations = [] if request.sound else check(request)
        if violations:
            raise RequestInvalid("the provider would refuse this: " + "; ".join(violations))
        entry = self._pick(request)
        if entry.delay:
            await self._clock.sleep(entry.delay)
        if entry.error is not None:
            raise failure(entry.error, entry.message or f"scripted failure {entry.error}")
        blocks = entry.blocks()
        if on_delta is not None:
            _stream(blocks, on_delta)
        return Reply(blocks, entry.reason, request.model or self.name, _usage(entry, request))

    def _pick(self, request: Request) -> ScriptedReply:
        if self._conditional:
            view = request_view(request, self._fields)
            for reply, when in self._conditional:
                if when(view):
                    return reply
        if self._repeat and self._next == len(self._queue):
            self._next = 0
        if self._next < len(self._queue):
            self._next += 1
            return self._queue[self._next - 1]
        shown = "\n".join(_shown(message) for message in request.messages)
        raise NoAnswer(
            f"the script of {self.name!r} has no answer for request {len(self.requests)}; "
            f"add an entry, or a `when` that takes it. The messages were:\n{shown}"
        )


def _shown(message: dict[str, Any]) -> str:
    """A message on one line, cut off where it is long, without what is only for the cache."""
    content = [
        {key: value for key, value in block.items() if key != "cache_control"}
        for block in message["content"]
    ]
    text = json.dumps(content, ensure_ascii=False)
    return f"{message['role']}: {text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}"


def request_view(request: Request, fields: Iterable[str] = REQUEST_FIELDS) -> dict[str, Any]:
    """What `when` sees as `request`: the `fields` of `REQUEST_FIELDS` that it asks for."""
    return {name: _FIELDS[name](request) for name in fields}


def _system(request: Request) -> str:
    return "\n".join(block["text"] for block in request.system)


def _last_user_text(request: Request) -> str:
    users = (message for message in reversed(request.messages) if message["role"] == "user")
    return next((_message_text(message) for message in users), "")


def _message_text(message: dict[str, Any]) -> str:
    return "\n".join(_texts(message["content"]))


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for block in content or ():
        if block.get("type") == "text":
            yield block["text"]
        elif block.get("type") == "tool_result":
            yield from _texts(block.get("content"))


def _prompt_tokens(request: Request) -> int:
    fixed = estimate_fixed(request.system, request.tools)
    return fixed + sum(estimate_message(message) for message in request.messages)


def _usage(entry: ScriptedReply, request: Request) -> Usage:
    if entry.usage is not None:
        return Usage(**entry.usage.model_dump())
    reply = estimate_message({"content": entry.blocks()})
    return Usage(input_tokens=_prompt_tokens(request), output_tokens=reply)


def failure(status: int | None, text: str) -> ModelError:
    """What a real model raises for an HTTP status; None where none was received."""
    if status is None or status in (408, 409, 429) or status >= 500:
        return ModelUnavailable(text, status=status)
    if status == 400 and "prompt is too long" in text:
        return PromptTooLong(text, status=status)
    return ModelRefused(text, status=status)


def _stream(blocks: list[Block], on_delta: Callable[[Delta], None]) -> None:
    for index, block in enumerate(blocks):
        match block.get("type"):
            case "text":
                _pieces("text", block["text"], index, on_delta)
            case "thinking":
                _pieces("thinking", block["thinking"], index, on_delta)
            case "tool_use":
                text = json.dumps(block["input"], ensure_ascii=False)
                on_delta(Delta("tool_input", text, index, block["name"], block["id"]))


def _pieces(kind: Any, text: str, index: int, on_delta: Callable[[Delta], None]) -> None:
    for at in range(0, len(text), _PIECE):
        on_delta(Delta(kind, text[at : at + _PIECE], index))


_FIELDS: dict[str, Callable[[Request], Any]] = {
    "system": _system,
    "messages": lambda request: request.messages,
    "tools": lambda request: request.tools,
    "lastUserText": _last_user_text,
    "text": lambda request: "\n".join(_message_text(message) for message in request.messages),
    "tokens": _prompt_tokens,
    "purpose": lambda request: request.purpose,
}
