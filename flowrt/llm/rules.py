"""What the Messages API refuses, checked before a request is sent.

`check` names every violation; `enforce` raises where `FLOWRT_STRICT_REQUESTS=1` (flowrt's own
tests) and otherwise repairs the outgoing copy and logs one line. What is stored is never changed.
The rules are those of the API's reference and of the reports FB-01, 04, 09 to 14, 17 and 20; two
user turns in a row are accepted by the API and refused here, because answers get worse.
"""

from __future__ import annotations

import os
import re
from typing import Any

from flowrt.errors import RequestInvalid
from flowrt.llm.model import Block, Request
from flowrt.observe.log import get_logger

STRICT = "FLOWRT_STRICT_REQUESTS"
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
NO_RESULT = "interrupted: no result was recorded for this call"

_SURROGATE = re.compile("[\ud800-\udfff]")
_log = get_logger("flowrt.llm.rules")

Message = dict[str, Any]


def enforce(request: Request) -> None:
    """Make sure that the provider will take the request: raise in tests, else repair the copy."""
    violations = check(request)
    if not violations:
        return
    if os.environ.get(STRICT) == "1":
        raise RequestInvalid("the request breaks the provider's rules: " + "; ".join(violations))
    request.messages = repair(request.messages)
    _log.warning(
        "a request was repaired before it was sent", purpose=request.purpose, faults=violations
    )


def check(request: Request) -> list[str]:
    """Every rule the request breaks, each with the place; empty where it is fine."""
    return [*_check_tools(request.tools), *check_messages(request.messages)]


def _check_tools(tools: list[dict[str, Any]]) -> list[str]:
    names = [tool.get("name", "") for tool in tools]
    faults = [
        f"tool name {name!r} does not match {TOOL_NAME.pattern}"
        for name in names
        if not TOOL_NAME.fullmatch(name)
    ]
    return faults + [
        f"two tools are called {n!r}" for n in sorted(set(names)) if names.count(n) > 1
    ]


def check_messages(messages: list[Message]) -> list[str]:
    """The rules of a list of messages."""
    if not messages:
        return ["there are no messages"]
    faults = []
    if messages[0]["role"] != "user":
        faults.append("messages[0]: the first message must be from the user")
    if messages[-1]["role"] != "user":
        faults.append(f"messages[{len(messages) - 1}]: the last message must be from the user")
    calls: list[str] = []
    seen: set[str] = set()
    role = ""
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        if message["role"] == role:
            faults.append(f"{place}: two {role} messages in a row")
        role = message["role"]
        faults += _check_content(message["content"], place)
        faults += _check_results(message, calls, place)
        calls = [block["id"] for block in _of(message, "tool_use")]
        faults += [f"{place}: the call id {call!r} is used twice" for call in calls if call in seen]
        seen.update(calls)
    return faults + [f"the call {call!r} has no result" for call in calls]


def _of(message: Message, kind: str) -> list[Block]:
    return [block for block in message["content"] if block.get("type") == kind]


def _check_content(content: list[Block], place: str) -> list[str]:
    if not content:
        return [f"{place}: the content is empty"]
    faults = []
    for index, block in enumerate(content):
        where = f"{place}.content[{index}]"
        kind = block.get("type")
        if kind == "text" and not block["text"].strip():
            faults.append(f"{where}: the text is blank")
        elif kind == "text" and _SURROGATE.search(block["text"]):
            faults.append(f"{where}: the text is not valid Unicode")
        elif kind == "thinking" and not block.get("signature"):
            faults.append(f"{where}: the thinking is not signed")
    return faults


def _check_results(message: Message, calls: list[str], place: str) -> list[str]:
    results = _of(message, "tool_result")
    ids = [block["tool_use_id"] for block in results]
    faults = [f"{place}: the call {call!r} has no result" for call in calls if call not in ids]
    faults += [
        f"{place}: the result {i!r} answers no call before it" for i in ids if i not in calls
    ]
    if len(set(ids)) < len(ids):
        faults.append(f"{place}: a call is answered twice")
    if message["content"][: len(results)] != results:
        faults.append(f"{place}: results must come before everything else")
    if results and message["role"] != "user":
        faults.append(f"{place}: results must be in a user message")
    return faults


def repair(messages: list[Message]) -> list[Message]:
    """Messages as close to these as the rules allow; the given ones are not changed."""
    repaired: list[Message] = []
    seen: set[str] = set()
    for message in messages:
        calls = _calls(repaired)
        if message["role"] == "assistant":
            _close(repaired, calls)
            content = _sound(message["content"], seen)
            seen.update(block["id"] for block in content if block.get("type") == "tool_use")
        else:
            content = _answers(message["content"], calls)
        if content and (repaired or message["role"] == "user"):
            _add(repaired, message["role"], content)
    _close(repaired, _calls(repaired))
    while repaired and repaired[-1]["role"] == "assistant":
        repaired.pop()
    return repaired


def _calls(messages: list[Message]) -> list[str]:
    if not messages or messages[-1]["role"] != "assistant":
        return []
    return [block["id"] for block in _of(messages[-1], "tool_use")]


def _close(repaired: list[Message], calls: list[str]) -> None:
    if calls:
        _add(repaired, "user", [_no_result(call) for call in calls])


def _sound(content: list[Block], seen: set[str]) -> list[Block]:
    sound: list[Block] = []
    for block in content:
        kind = block.get("type")
        if kind == "tool_use":
            if block["id"] in seen or any(block["id"] == other.get("id") for other in sound):
                continue
        elif kind == "tool_result" or not sendable(block):
            continue
        sound.append(_valid_text(block))
    return sound


def _answers(content: list[Block], calls: list[str]) -> list[Block]:
    results: dict[str, Block] = {}
    rest: list[Block] = []
    for block in content:
        if block.get("type") == "tool_result":
            if block["tool_use_id"] in calls:
                results.setdefault(block["tool_use_id"], block)
        elif sendable(block) and block.get("type") != "tool_use":
            rest.append(_valid_text(block))
    return [results.get(call) or _no_result(call) for call in calls] + rest


def sendable(block: Block) -> bool:
    """Whether a request may hold the block: replies bring blank text and unsigned thinking."""
    match block.get("type"):
        case "text":
            return bool(block["text"].strip())
        case "thinking":
            return bool(block.get("signature"))
    return True


def _valid_text(block: Block) -> Block:
    if block.get("type") == "text" and _SURROGATE.search(block["text"]):
        return {**block, "text": _SURROGATE.sub("\ufffd", block["text"])}
    return block


def _no_result(call: str) -> Block:
    return {"type": "tool_result", "tool_use_id": call, "content": NO_RESULT, "is_error": True}


def _add(repaired: list[Message], role: str, content: list[Block]) -> None:
    if not repaired or repaired[-1]["role"] != role:
        repaired.append({"role": role, "content": content})
        return
    together = repaired[-1]["content"] + content
    results = [block for block in together if block.get("type") == "tool_result"]
    rest = [block for block in together if block.get("type") != "tool_result"]
    repaired[-1] = {"role": role, "content": results + rest}
