"""Replies of Chat Completions in the Messages API's blocks: whole, or put together from a stream.

Servers differ in everything that the API's reference leaves open, and in some that it does not;
what is read generously here has been seen at one of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from flowrt.ids import new_id
from flowrt.llm.failures import BrokenReply
from flowrt.llm.model import Block, Delta, Reply, Usage
from flowrt.llm.openai_errors import error_in
from flowrt.llm.openai_media import picture_block
from flowrt.llm.openai_reasoning import (
    CALL_FIELDS,
    MESSAGE_FIELDS,
    TEXT_FIELDS,
    merge,
    thinking_block,
)
from flowrt.message import clean

_STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}

# What every provider takes as the id of a call: a thread may go on with another one.
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")


def read_reply(completion: Any, signature: str, used: Collection[str] = ()) -> Reply:
    """The reply in a decoded completion. Raises `BrokenReply` where it is not one.

    `signature` is put under what the model thought; `used` are ids that calls may not have.
    """
    assembly = Assembly(signature, used)
    try:
        if "error" in completion and "choices" not in completion:
            raise error_in(completion)
        assembly.count(completion.get("usage"))
        assembly.model = str(completion.get("model") or "")
        choice = completion["choices"][0]
        assembly.add(choice["message"])
        assembly.finish(choice.get("finish_reason"))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BrokenReply(f"no message in {json.dumps(completion)[:200]}") from error
    return assembly.reply()


def read_usage(usage: Any) -> Usage | None:
    """Tokens in flowrt's names; None where the server reported none.

    Raises `BrokenReply` where a figure is not a number.
    """
    if not usage:
        return None
    try:
        prompt = int(usage.get("prompt_tokens") or 0)
        output = int(usage.get("completion_tokens") or 0)
        read = usage.get("prompt_tokens_details") or {}
        cached = int(read.get("cached_tokens") or 0)
        written = int(read.get("cache_write_tokens") or 0)
        cost = usage.get("cost")
        return Usage(
            input_tokens=max(0, prompt - cached - written),
            # Gemini and Grok leave what was thought out of `completion_tokens`, and bill it.
            output_tokens=max(output, int(usage.get("total_tokens") or 0) - prompt),
            cached_tokens=cached,
            cache_write_tokens=written,
            thinking_tokens=int(
                (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
            ),
            reported_cost_usd=None if cost is None else float(cost),
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise BrokenReply(f"the usage is malformed: {json.dumps(usage)[:200]}") from error


class ReplyStream:
    """Reads the events of a streamed reply and hands out its deltas as they come.

    `delivered` says whether any was handed out: from then on a broken stream cannot be repeated
    without saying things twice (FB-23). `complete` says that the server has finished.
    """

    def __init__(
        self,
        on_delta: Callable[[Delta], None] | None,
        signature: str,
        used: Collection[str] = (),
    ) -> None:
        self._on_delta = on_delta
        self._assembly = Assembly(signature, used)
        self._rest = b""
        self.delivered = False
        self.complete = False

    def feed(self, chunk: bytes) -> None:
        """Take what arrived of the stream. Raises `BrokenReply` where it reports an error."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._handle(line[5:].strip())

    def reply(self) -> Reply:
        """The whole reply. Raises `BrokenReply` where the stream ended too early."""
        if not self.complete:
            raise BrokenReply("the stream ended before the reply was complete")
        return self._assembly.reply()

    def _handle(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.complete = True
            return
        try:
            event = json.loads(data)
            if event.get("error"):
                raise error_in(event)
            self._take(event)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise BrokenReply(f"a stream event is malformed: {data[:200]!r}") from error
        for delta in self._assembly.take_deltas():
            if self._on_delta is not None:
                self.delivered = True
                self._on_delta(delta)

    def _take(self, event: dict[str, Any]) -> None:
        assembly = self._assembly
        assembly.model = str(event.get("model") or assembly.model)
        assembly.count(event.get("usage"))
        for choice in event.get("choices") or ():
            assembly.add(choice.get("delta") or {})
            if reason := choice.get("finish_reason"):
                assembly.finish(reason)
                # Some servers end without `[DONE]`.
                self.complete = True


@dataclass(slots=True)
class _Call:
    """A call while it comes in. `given` is the id as the server wrote it."""

    block: Block
    given: str
    at: int
    arguments: list[str] = field(default_factory=list)
    echo: dict[str, Any] = field(default_factory=dict)


class Assembly:
    """A reply while it is put together from messages or pieces of one, which have one shape."""

    def __init__(self, signature: str, used: Collection[str]) -> None:
        self._signature = signature
        self._used = set(used)
        self._order: list[str | _Call | Block] = []
        self._texts: dict[str, list[str]] = {"text": [], "thinking": []}
        self._echo: dict[str, Any] = {}
        self._latest: dict[Any, _Call] = {}
        self._deltas: list[Delta] = []
        self._refused = False
        self._reason: str | None = None
        self._usage: dict[str, Any] = {}
        self.model = ""

    @property
    def _calls(self) -> list[_Call]:
        return [part for part in self._order if isinstance(part, _Call)]

    def take_deltas(self) -> list[Delta]:
        """What came in since the last call."""
        taken, self._deltas = self._deltas, []
        return taken

    def count(self, usage: dict[str, Any] | None) -> None:
        """Take usage; servers that report it with every piece report totals."""
        self._usage = usage or self._usage

    def finish(self, reason: str | None) -> None:
        """Take the finish reason. Raises `BrokenReply` where it is that something broke."""
        if reason == "error":
            raise BrokenReply("the reply ended with an error", status=500)
        self._reason = reason

    def add(self, piece: dict[str, Any]) -> None:
        """Take a message, or the next piece of one."""
        merge(self._echo, piece, MESSAGE_FIELDS)
        thought = next((piece[name] for name in TEXT_FIELDS if piece.get(name)), "")
        self._add_text("thinking", thought)
        content = piece.get("content")
        self._add_text("text", _text(content))
        pictures = [*(content if isinstance(content, list) else ()), *(piece.get("images") or ())]
        self._order += [block for part in pictures if (block := picture_block(part)) is not None]
        if refusal := piece.get("refusal"):
            self._refused = True
            self._add_text("text", refusal)
        for call in piece.get("tool_calls") or ():
            self._add_call(call)

    def reply(self) -> Reply:
        """What was put together. Raises `BrokenReply` for usage that is none."""
        cut_off = False
        for call in self._calls:
            cut_off |= not _decode(call)
        content = [block for part in self._order if (block := self._block(part)) is not None]
        if not self._texts["thinking"] and (block := self._thinking()):
            content.append(block)
        usage = read_usage(self._usage)
        return Reply(clean(content), self._stop_reason(cut_off), self.model, usage)

    def _add_text(self, kind: Any, text: str) -> None:
        if not text:
            return
        if kind not in self._order:
            self._order.append(kind)
        self._texts[kind].append(_string(text))
        self._deltas.append(Delta(kind, text, self._order.index(kind)))

    def _add_call(self, piece: dict[str, Any]) -> None:
        function = piece.get("function") or {}
        call = self._call(piece, function)
        if not call.block["name"]:
            call.block["name"] = _string(function.get("name"))
        merge(call.echo, piece, CALL_FIELDS)
        text = function.get("arguments")
        if isinstance(text, dict):
            text = json.dumps(text)  # some servers have decoded them already
        if not text:
            return
        call.arguments.append(_string(text))
        name, call_id = call.block["name"], call.block["id"]
        self._deltas.append(Delta("tool_input", text, call.at, name, call_id))

    def _call(self, piece: dict[str, Any], function: dict[str, Any]) -> _Call:
        """The call that a piece belongs to.

        Gemini and older Ollamas send every call of a reply whole and as number 0, so an id that
        differs begins another one; where there is no number, a name does.
        """
        given, number = piece.get("id") or "", piece.get("index")
        latest = self._latest.get(number)
        named = number is None and function.get("name")
        if latest is None or named or (given and given != latest.given):
            latest = self._latest[number] = self._new_call(given)
        return latest

    def _new_call(self, given: str) -> _Call:
        """A call with an id of its own: some servers give none, or the same in every reply."""
        good = isinstance(given, str) and _CALL_ID.fullmatch(given) and given not in self._used
        call_id = given if good else f"call_{new_id()[:24]}"
        self._used.add(call_id)
        block: Block = {"type": "tool_use", "id": call_id, "name": "", "input": {}}
        call = _Call(block, given, len(self._order))
        self._order.append(call)
        return call

    def _block(self, part: str | _Call | Block) -> Block | None:
        if isinstance(part, _Call):
            return part.block
        if isinstance(part, dict):
            return part
        if part == "thinking":
            return self._thinking()
        return {"type": "text", "text": "".join(self._texts["text"])}

    def _thinking(self) -> Block | None:
        calls = {call.block["id"]: call.echo for call in self._calls if call.echo}
        if not self._echo and not calls:
            return None
        return thinking_block(self._signature, "".join(self._texts["thinking"]), self._echo, calls)

    def _stop_reason(self, cut_off: bool) -> str:
        reason = (self._reason or "stop").partition(":")[0]  # "content_filter: SAFETY" at Gemini
        known = _STOP_REASONS.get(reason, reason)
        if self._refused or known == "refusal":
            return "refusal"
        if cut_off:
            # Arguments that do not parse were cut off, whatever the server calls it: a reply
            # that ended so is never acted upon (FB-19).
            return "max_tokens"
        if known in ("end_turn", "tool_use"):
            return "tool_use" if self._calls else "end_turn"
        return known


def _string(value: Any) -> str:
    if not isinstance(value, str | None):
        raise TypeError(f"{value!r} is not a text")
    return value or ""


def _text(content: Any) -> str:
    """The text of a message's content; Mistral sends its own thoughts along as parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    return content or ""


def _decode(call: _Call) -> bool:
    """Decode the arguments into the block; False where they are not an object."""
    text = "".join(call.arguments)
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = text
    if value is None:  # how some models write that there are none
        value = {}
    good = isinstance(value, dict)
    call.block["input"] = value if good else {"INVALID_JSON": text}
    return good
