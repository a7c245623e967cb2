"""Entries of a transcript, and the units in which it may be cut.

The unit of every cut is the **exchange**: a user turn and all that answers it; inside the newest
exchange, the **tool round**: an assistant turn that makes calls, with their results. Cutting
anywhere else leaves half a pair, and a history the provider refuses for ever (FB-01).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from flowrt.llm.estimate import estimate_message
from flowrt.llm.media import without_files
from flowrt.message import clean

Kind = Literal["message", "summary"]


class Entry:
    """One message of a transcript.

    `tokens` is its estimate, `opens` says that it begins an exchange, `added` that the run under
    way has added it and the store does not have it yet. `delivery` marks what the user said in a
    message that may come again. `number` is its own within its thread, also once it has left the
    context; None where nothing is recorded (`flowrt.memory.shown`).
    """

    __slots__ = ("added", "delivery", "kind", "message", "number", "opens", "tokens")

    def __init__(
        self,
        message: dict[str, Any],
        kind: Kind = "message",
        delivery: str = "",
        number: int | None = None,
    ) -> None:
        self.message = message
        self.kind = kind
        self.delivery = delivery
        self.number = number
        self.added = False
        self.tokens = estimate_message(message)
        self.opens = message["role"] == "user" and not is_results(message)

    def encode(self) -> bytes:
        """The entry as it is stored: the message's own JSON, with what else there is to know."""
        out = self.message
        if self.kind != "message":
            out = {**out, "kind": self.kind}
        if self.delivery:
            out = {**out, "delivery": self.delivery}
        if self.number is not None:
            out = {**out, "number": self.number}
        return json.dumps(out, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def decode_all(cls, stored: Sequence[bytes]) -> list[Entry]:
        """The entries of a log, parsed in one go: a thread has hundreds of small ones."""
        messages = json.loads(b"[" + b",".join(stored) + b"]")
        return [
            cls(
                message,
                message.pop("kind", "message"),
                message.pop("delivery", ""),
                message.pop("number", None),
            )
            for message in messages
        ]


def user_entry(text: str, delivery: str = "") -> Entry:
    """A user turn of plain text."""
    return Entry({"role": "user", "content": [{"type": "text", "text": text}]}, delivery=delivery)


def assistant_entry(content: list[dict[str, Any]]) -> Entry:
    """An assistant turn with the blocks as the model sent them; a text stands for each file."""
    # A provider's text may hold what the stores and CEL cannot; the usual reply is not copied.
    return Entry({"role": "assistant", "content": clean(without_files(content))})


def results_entry(results: list[dict[str, Any]]) -> Entry:
    """The user turn that answers the calls of the assistant turn before it."""
    return Entry({"role": "user", "content": results})


def is_results(message: dict[str, Any]) -> bool:
    """Whether a user message answers tool calls rather than opening an exchange."""
    content = message["content"]
    return bool(content) and content[0].get("type") == "tool_result"


def calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of an assistant message."""
    if message["role"] != "assistant":
        return []
    return [block for block in message["content"] if block.get("type") == "tool_use"]


def answer_to(entries: Sequence[Entry], delivery: str) -> str:
    """What was answered to the message that came under this mark; "" where nothing was yet."""
    texts: list[str] = []
    inside = False
    for entry in entries:
        if entry.opens:
            inside = entry.delivery == delivery
            texts = [] if inside else texts
        elif inside and entry.message["role"] == "assistant" and not calls_of(entry.message):
            content = entry.message["content"]
            texts = [block["text"] for block in content if block.get("type") == "text"]
    return "".join(texts)


def tokens_of(entries: Sequence[Entry]) -> int:
    """The estimate of several entries."""
    return sum(entry.tokens for entry in entries)


def exchanges(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The entries in exchanges, oldest first. What precedes the first user turn is one unit."""
    return _split(entries, lambda entry: entry.opens)


def rounds(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The tool rounds of an exchange without its opening, oldest first."""
    return _split(entries, lambda entry: entry.opens or entry.message["role"] == "assistant")


def _split(entries: Sequence[Entry], begins: Any) -> list[list[Entry]]:
    units: list[list[Entry]] = []
    for entry in entries:
        if begins(entry) or not units:
            units.append([])
        units[-1].append(entry)
    return units


INTERRUPTED = "interrupted: the run ended before this call returned"


def close_calls(entries: list[Entry], reason: str = INTERRUPTED) -> list[Entry]:
    """A copy in which every unanswered call has an error result (FB-04).

    For the working copy: what is stored stays as it happened. A result whose call is missing is
    left out for the same reason.
    """
    closed: list[Entry] = []
    open_calls: list[str] = []
    for entry in entries:
        answers = is_results(entry.message) if entry.message["role"] == "user" else False
        if answers:
            entry = _only_answers(entry, open_calls, reason)
        elif open_calls:
            closed.append(results_entry([error_result(call, reason) for call in open_calls]))
        open_calls = [call["id"] for call in calls_of(entry.message)]
        if entry.message["content"]:
            closed.append(entry)
    if open_calls:
        closed.append(results_entry([error_result(call, reason) for call in open_calls]))
    return closed


def _only_answers(entry: Entry, open_calls: list[str], reason: str) -> Entry:
    content = entry.message["content"]
    answered = [block.get("tool_use_id") for block in content]
    results = [b for b in content if b["type"] != "tool_result" or b["tool_use_id"] in open_calls]
    missing = [error_result(call, reason) for call in open_calls if call not in answered]
    if not missing and len(results) == len(content):
        return entry
    return results_entry(
        [b for b in results if b["type"] == "tool_result"]
        + missing
        + [b for b in results if b["type"] != "tool_result"]
    )


def error_result(call_id: str, text: str) -> dict[str, Any]:
    """A tool result that reports a failure."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": True}
