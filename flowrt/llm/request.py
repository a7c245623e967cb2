"""The one place where a request is built, for the agent loop and for summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowrt.llm.model import Block, Request
from flowrt.llm.repair import is_blank, results_first, sendable_blocks
from flowrt.llm.rules import check_messages, enforce

_CACHE = {"type": "ephemeral"}

# The API takes no breakpoint on these.
_UNMARKED = ("thinking", "redacted_thinking")


def build_request(
    *,
    system: Sequence[str],
    tools: Sequence[dict[str, Any]],
    messages: Sequence[dict[str, Any]],
    stored: int = 0,
    preamble: str | None = None,
    model: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    cache: bool = True,
    tool_choice: dict[str, Any] | None = None,
    purpose: str = "",
) -> Request:
    """A request in the provider's form, checked by `flowrt.llm.rules`.

    The outgoing copy has neighbouring turns of one role joined, results first, and is without
    blank text and unsigned thinking, which replies contain and requests may not (FB-11, FB-17);
    calls of tools that were made up are renamed where the API refuses their names.
    `stored` is how many of the messages are in the store. `preamble` is text for this run alone,
    such as recalled facts; it stands in front of the user message that opened the run, which is
    the first that is not stored, so that all before it stays as the provider has cached it.

    With `cache`, the provider is told to keep the prefix up to the tools and system prompt, up to
    the last of the `stored` messages, and up to the end: the next turn and the next run read what
    this one wrote. The given messages are not changed. `tool_choice` has the API's form; without
    one, the model calls tools as it likes.

    Raises `RequestInvalid` as `flowrt.llm.rules.enforce` does.
    """
    if preamble is not None and not is_blank(preamble):
        messages = _with_preamble(messages, preamble, stored)
    outgoing, last_stored = _outgoing(messages, stored)
    request = Request(
        messages=outgoing,
        system=[{"type": "text", "text": text} for text in system if not is_blank(text)],
        tools=list(tools),
        tool_choice=tool_choice,
        model=model,
        max_tokens=max_tokens,
        temperature=temperature,
        purpose=purpose,
    )
    enforce(request)
    if cache:
        _mark(request, last_stored)
    return request


def violations(messages: Sequence[dict[str, Any]]) -> list[str]:
    """What the provider would refuse of these messages in the form in which they are sent."""
    return check_messages(_outgoing(messages, 0)[0])


def _with_preamble(
    messages: Sequence[dict[str, Any]], preamble: str, stored: int
) -> Sequence[dict[str, Any]]:
    """The messages with the preamble in front of the user's first that is not stored yet."""
    block = {"type": "text", "text": preamble}
    for index in range(stored, len(messages)):
        content = messages[index]["content"]
        if messages[index]["role"] == "user" and not any(map(_is_result, content)):
            opened = {"role": "user", "content": [block, *content]}
            return [*messages[:index], opened, *messages[index + 1 :]]
    return [*messages, {"role": "user", "content": [block]}]


def _is_result(block: Block) -> bool:
    return block.get("type") == "tool_result"


def _outgoing(messages: Sequence[dict[str, Any]], stored: int) -> tuple[list[dict[str, Any]], int]:
    """The messages to send, and the index of the one that holds the last stored message."""
    outgoing: list[dict[str, Any]] = []
    last_stored = -1
    role = ""
    for index, message in enumerate(messages):
        content = sendable_blocks(message["content"])
        if content:
            if message["role"] == role:
                together = results_first(outgoing[-1]["content"] + content)
                outgoing[-1] = {"role": role, "content": together}
            else:
                role = message["role"]
                outgoing.append({"role": role, "content": content})
        if index == stored - 1:
            last_stored = len(outgoing) - 1
    return outgoing, last_stored


def join_turns(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with neighbours of one role joined and without what no request may hold."""
    return _outgoing(messages, 0)[0]


def _mark(request: Request, last_stored: int) -> None:
    """Set cache breakpoints, on copies: four at the most, which is what the API allows.

    The one on the user message before the last is where the request before this one ended. The
    API looks back only 20 blocks from a breakpoint for what it knows, and one round of many
    parallel calls is longer than that.
    """
    if request.system:
        request.system[-1] = {**request.system[-1], "cache_control": _CACHE}
    elif request.tools:
        request.tools[-1] = {**request.tools[-1], "cache_control": _CACHE}
    last = len(request.messages) - 1
    for index in {last, last - 2, last_stored}:
        if not 0 <= index <= last:
            continue  # nothing is stored, or a repair has made the list shorter
        message = request.messages[index]
        *before, end = message["content"]
        if end.get("type") not in _UNMARKED:
            marked = {**end, "cache_control": _CACHE}
            request.messages[index] = {"role": message["role"], "content": [*before, marked]}
