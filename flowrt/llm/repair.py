"""Outgoing messages made acceptable to the Messages API, where a fault left them otherwise.

This is the last line, not the plan: the transcript is kept sound by `flowrt.memory`, and what
happens here leaves a log line. The given messages and blocks are never changed.
"""

from __future__ import annotations

import re
from typing import Any

from flowrt.llm.model import Block
from flowrt.message import clean

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")

NO_RESULT = "interrupted: no result was recorded for this call"
NOTHING_SAID = "the tool failed and said nothing"

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")

Message = dict[str, Any]

_THINKING = ("thinking", "redacted_thinking")


def repair(messages: list[Message]) -> list[Message]:
    """Messages as close to these as the rules allow; empty where nothing can be sent.

    Calls without a result get an error result; results without a call, second results, second
    uses of a call's id, and blocks on the wrong side are left out, as are blank text and unsigned
    thinking. What is not from the user goes at both ends. Turns of one role are joined, results
    first.
    """
    repaired: list[Message] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "user":
            content = _answers(message["content"], _open_calls(repaired))
        elif repaired:
            content = _sound_turn(message["content"], seen)
            # Between two turns of the assistant, the calls of the first are still unanswered.
            _add(repaired, "user", [_no_result(call) for call in _open_calls(repaired)])
        else:
            continue
        _add(repaired, message["role"], content)
    while repaired and repaired[-1]["role"] != "user" and not _open_calls(repaired):
        repaired.pop()
    _add(repaired, "user", [_no_result(call) for call in _open_calls(repaired)])
    return repaired


def sendable(block: Block) -> bool:
    """Whether a request may hold the block: replies bring blank text and unsigned thinking."""
    match block.get("type"):
        case "text":
            return not is_blank(block["text"])
        case "thinking":
            return bool(block.get("signature"))
    return True


def sendable_blocks(content: list[Block]) -> list[Block]:
    """What of a turn's content may be sent; the same list where that is all of it.

    Models call tools that do not exist, under names that the API takes in a reply and refuses in a
    request for ever after. The answer has told the model so; the name goes out in its letters.
    """
    for block in content:
        if not sendable(block) or not has_good_name(block):
            return [_renamed(other) for other in content if sendable(other)]
    return content


def has_good_name(block: Block) -> bool:
    """Whether the block, if it is a call, names its tool as the API demands (FB-20)."""
    return block.get("type") != "tool_use" or bool(TOOL_NAME.fullmatch(block["name"]))


def _renamed(block: Block) -> Block:
    if has_good_name(block):
        return block
    return {**block, "name": _NOT_IN_NAMES.sub("_", block["name"])[:128] or "_"}


def is_blank(text: str) -> bool:
    """Whether there is nothing but white space, as the API sees it."""
    return not text or text.isspace()


def is_unicode(text: str) -> bool:
    """Whether the text can be encoded, which lone surrogates cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _open_calls(messages: list[Message]) -> list[str]:
    if not messages or messages[-1]["role"] != "assistant":
        return []
    return [block["id"] for block in messages[-1]["content"] if block.get("type") == "tool_use"]


def _sound_turn(content: list[Block], seen: set[str]) -> list[Block]:
    sound: list[Block] = []
    for block in sendable_blocks(content):
        kind = block.get("type")
        if kind == "tool_result":
            continue
        if kind == "tool_use":
            if block["id"] in seen:
                continue
            seen.add(block["id"])
            if not isinstance(block["input"], dict):
                block = {**block, "input": {"INVALID_JSON": block["input"]}}
        sound.append(clean(block))
    return sound


def _answers(content: list[Block], calls: list[str]) -> list[Block]:
    results: dict[str, Block] = {}
    rest: list[Block] = []
    for block in content:
        kind = block.get("type")
        if kind == "tool_result":
            if block["tool_use_id"] in calls:
                results.setdefault(block["tool_use_id"], _sound_result(block))
        elif kind != "tool_use" and kind not in _THINKING and sendable(block):
            rest.append(clean(block))
    return [results.get(call) or _no_result(call) for call in calls] + rest


def _sound_result(block: Block) -> Block:
    content = block.get("content")
    if isinstance(content, list) and not all(sendable(part) for part in content):
        content = [part for part in content if sendable(part)]
        block = {**block, "content": content}
    if block.get("is_error") and not content:
        block = {**block, "content": NOTHING_SAID}
    sound: Block = clean(block)
    return sound


def _no_result(call: str) -> Block:
    return {"type": "tool_result", "tool_use_id": call, "content": NO_RESULT, "is_error": True}


def _add(repaired: list[Message], role: str, content: list[Block]) -> None:
    if not content:
        return
    if not repaired or repaired[-1]["role"] != role:
        repaired.append({"role": role, "content": content})
        return
    repaired[-1] = {"role": role, "content": results_first(repaired[-1]["content"] + content)}


def results_first(content: list[Block]) -> list[Block]:
    """The blocks with tool results in front, as the API wants them (FB-13)."""
    results = [block for block in content if block.get("type") == "tool_result"]
    if not results:
        return content
    return results + [block for block in content if block.get("type") != "tool_result"]
