"""The one place where a request is built, for the agent loop and for summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowrt.llm.model import Block, Request
from flowrt.llm.rules import enforce, sendable

_CACHE = {"type": "ephemeral"}


def build_request(
    *,
    system: Sequence[str],
    tools: Sequence[dict[str, Any]],
    messages: Sequence[dict[str, Any]],
    stored: int = 0,
    model: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    cache: bool = True,
    purpose: str = "",
) -> Request:
    """A request in the provider's form, checked by `flowrt.llm.rules`.

    The outgoing copy has neighbouring turns of one role joined, results first, and is without
    blank text and unsigned thinking, which replies contain and requests may not. With `cache`, the
    provider is told to keep the prefix up to the tools and system prompt, up to the last of the
    `stored` messages, and up to the end: the next turn and the next run read what this one wrote.
    The given messages are not changed.
    """
    outgoing, last_stored = _outgoing(messages, stored)
    request = Request(
        messages=outgoing,
        system=[{"type": "text", "text": text} for text in system],
        tools=list(tools),
        model=model,
        max_tokens=max_tokens,
        temperature=temperature,
        purpose=purpose,
    )
    enforce(request)
    if cache:
        _mark(request, last_stored)
    return request


def _outgoing(messages: Sequence[dict[str, Any]], stored: int) -> tuple[list[dict[str, Any]], int]:
    """The messages to send, and the index of the one that holds the last stored message."""
    outgoing: list[dict[str, Any]] = []
    last_stored = -1
    role = ""
    for index, message in enumerate(messages):
        content = _sendable(message["content"])
        if content:
            if message["role"] == role:
                _join(outgoing, content)
            else:
                role = message["role"]
                outgoing.append({"role": role, "content": content})
        if index == stored - 1:
            last_stored = len(outgoing) - 1
    return outgoing, last_stored


def _sendable(content: list[Block]) -> list[Block]:
    for block in content:
        if not sendable(block):
            return [other for other in content if sendable(other)]
    return content


def _join(outgoing: list[dict[str, Any]], content: list[Block]) -> None:
    together = outgoing[-1]["content"] + content
    results = [block for block in together if block.get("type") == "tool_result"]
    if results and together[: len(results)] != results:
        together = results + [b for b in together if b.get("type") != "tool_result"]
    outgoing[-1] = {"role": outgoing[-1]["role"], "content": together}


def _mark(request: Request, last_stored: int) -> None:
    """Set cache breakpoints, on copies. The API allows four; these are three at the most."""
    if request.system:
        request.system[-1] = {**request.system[-1], "cache_control": _CACHE}
    elif request.tools:
        request.tools[-1] = {**request.tools[-1], "cache_control": _CACHE}
    for index in {len(request.messages) - 1, last_stored}:
        if index >= 0:
            message = request.messages[index]
            *before, last = message["content"]
            if last.get("type") in ("thinking", "redacted_thinking"):
                continue  # the API takes no breakpoint there
            marked = {**last, "cache_control": _CACHE}
            request.messages[index] = {"role": message["role"], "content": [*before, marked]}
