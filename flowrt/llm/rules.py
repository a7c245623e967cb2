"""What the Messages API refuses, checked before a request is sent.

`check` names every violation; `enforce` raises where `FLOWRT_STRICT_REQUESTS=1` (flowrt's own
tests) and otherwise repairs the outgoing copy and logs one line. What is stored is never changed.
The rules are those of the API's reference and of the reports FB-01, 04, 09 to 14, 17 and 20; two
user turns in a row are accepted by the API and refused here, because answers get worse.
"""

from __future__ import annotations

import os
from typing import Any

from flowrt.errors import RequestInvalid
from flowrt.llm.model import Block, Request
from flowrt.llm.repair import TOOL_NAME, has_good_name, is_blank, is_unicode, repair
from flowrt.observe.log import get_logger

STRICT = "FLOWRT_STRICT_REQUESTS"
"""The environment variable that turns repairs into errors, with the value 1."""

_log = get_logger("flowrt.llm.rules")

Message = dict[str, Any]


def enforce(request: Request) -> None:
    """Make sure that the provider will take the request, replacing its messages where it has to.

    Raises `RequestInvalid` in strict mode, and where no repair helps (a tool's name, or nothing
    left to send): a refusal that is certain is not worth a call.
    """
    violations = check(request)
    if not violations:
        request.sound = True
        return
    if os.environ.get(STRICT) != "1":
        request.messages = repair(request.messages)
        remaining = check(request)
        if not remaining:
            request.sound = True
            _log.warning(
                "a request was repaired before it was sent",
                purpose=request.purpose,
                faults=violations,
            )
            return
        violations = remaining
    raise RequestInvalid("the provider would refuse this request: " + "; ".join(violations))


def check(request: Request) -> list[str]:
    """Every rule the request breaks, each with the place; empty where it is fine.

    The arguments of calls are not searched for invalid text: they are cleaned where they enter.
    """
    faults = [
        f"system[{index}]: {fault}"
        for index, block in enumerate(request.system)
        if block.get("type") == "text" and (fault := _text_fault(block["text"]))
    ]
    return [*faults, *_check_tools(request.tools), *check_messages(request.messages)]


def _check_tools(tools: list[dict[str, Any]]) -> list[str]:
    faults: list[str] = []
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        name = tool.get("name", "")
        if not TOOL_NAME.fullmatch(name):
            faults.append(f"tools[{index}]: the name {name!r} does not match {TOOL_NAME.pattern}")
        if name in seen:
            faults.append(f"tools[{index}]: the name {name!r} is used twice")
        seen.add(name)
    return faults


def check_messages(messages: list[Message]) -> list[str]:
    """The rules of a list of messages."""
    if not messages:
        return ["there are no messages"]
    faults: list[str] = []
    if messages[0]["role"] != "user":
        faults.append("messages[0]: the first message must be from the user")
    if messages[-1]["role"] != "user":
        faults.append(f"messages[{len(messages) - 1}]: the last message must be from the user")
    calls: list[str] = []
    seen: set[str] = set()
    role = ""
    for index, message in enumerate(messages):
        found = _check_blocks(message)
        if message["role"] == role:
            found.append(f": two {role} messages in a row")
        role = message["role"]
        found += _check_results(message["content"], calls)
        calls = [block["id"] for block in message["content"] if block.get("type") == "tool_use"]
        for call in calls:
            if call in seen:
                found.append(f": the call id {call!r} is used twice")
            seen.add(call)
        faults += [f"messages[{index}]{fault}" for fault in found]
    return faults + [f"messages[{len(messages) - 1}]: the call {c!r} has no result" for c in calls]


def _check_blocks(message: Message) -> list[str]:
    content, role = message["content"], message["role"]
    if not content:
        return [": the content is empty"]
    faults = []
    for index, block in enumerate(content):
        fault = _block_fault(block, role)
        if fault:
            faults.append(f".content[{index}]: {fault}")
    return faults


def _block_fault(block: Block, role: str) -> str:
    match block.get("type"):
        case "text":
            return _text_fault(block["text"])
        case "tool_result":
            return "results must be in a user message" if role != "user" else _result_fault(block)
        case "tool_use":
            return "calls must be in an assistant message" if role == "user" else _call_fault(block)
        case "thinking" | "redacted_thinking" if role == "user":
            return "thinking must be in an assistant message"
        case "thinking":
            return "" if block.get("signature") else "the thinking is not signed"
    return ""


def _call_fault(block: Block) -> str:
    if not has_good_name(block):
        return f"the tool name {block['name']!r} does not match {TOOL_NAME.pattern}"
    return "" if isinstance(block["input"], dict) else "the arguments are not an object"


def _result_fault(block: Block) -> str:
    content = block.get("content")
    if block.get("is_error") and not content:
        return "an error result says nothing"
    if isinstance(content, str):
        return "" if is_unicode(content) else "the text is not valid Unicode"
    for part in content or ():
        if part.get("type") == "text" and (fault := _text_fault(part["text"])):
            return f"{fault} (in the result)"
    return ""


def _text_fault(text: str) -> str:
    if is_blank(text):
        return "the text is blank"
    return "" if is_unicode(text) else "the text is not valid Unicode"


def _check_results(content: list[Block], calls: list[str]) -> list[str]:
    """Whether a message answers exactly the calls of the one before it, and does so first."""
    ids = [block["tool_use_id"] for block in content if block.get("type") == "tool_result"]
    if not ids and not calls:
        return []
    faults = [f": the call {call!r} has no result" for call in calls if call not in ids]
    faults += [f": the result {i!r} answers no call of the message before" for i in ids
               if i not in calls]  # fmt: skip
    if len(set(ids)) < len(ids):
        faults.append(": a call is answered twice")
    if any(block.get("type") != "tool_result" for block in content[: len(ids)]):
        faults.append(": results must come before everything else")
    return faults
