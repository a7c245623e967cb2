"""What the Chat Completions and Embeddings APIs answer with a 400, for the fake to refuse too.

Written from the APIs' own error texts and not from `flowrt.llm.openai_messages`, so that the two
check each other. `refusals` is lazy: the first is the one that the API would have sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

Body = dict[str, Any]

MOST_INPUTS, MOST_INPUT_TOKENS = 2048, 300_000
"""Texts and tokens of one request for embeddings."""

_NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")
_LONGEST_NAME, _LONGEST_ID = 64, 40

_PARAMETERS: dict[str, type | tuple[type, ...]] = {
    "model": str, "messages": list, "tools": list, "tool_choice": (str, dict), "stream": bool,
    "stream_options": dict, "max_tokens": int, "max_completion_tokens": int,
    "temperature": (int, float), "top_p": (int, float), "stop": (str, list), "seed": int,
    "reasoning_effort": str, "parallel_tool_calls": bool, "response_format": dict, "user": str,
    "metadata": dict, "store": bool,
}  # fmt: skip

_MESSAGE_FIELDS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal"},
    "tool": {"role", "content", "tool_call_id"},
}
_CALL_FIELDS = {"id", "type", "function"}
_ROLES = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"

_PARTS = {"text": "text", "image_url": "image_url", "file": "file", "input_audio": "input_audio"}

_WORDS = {
    str: "a string", list: "an array", dict: "an object", bool: "a boolean", int: "an integer",
    float: "a decimal", type(None): "null",
}  # fmt: skip


class Refusal(NamedTuple):
    """An error body's text, and what else it says."""

    text: str
    param: str | None = None
    code: str | None = None


def refusals(body: Any, *, extras: Collection[str] = ()) -> Iterator[Refusal]:
    """Why the API would refuse a chat request's body; nothing where it is fine.

    `extras` are the names of parameters and fields that it takes besides OpenAI's own.
    """
    yield from _parameters(body, extras)
    yield from _settings(body)
    for index, tool in enumerate(body.get("tools", [])):
        yield from _tool(tool, f"tools[{index}]")
    for index, message in enumerate(body["messages"]):
        yield from _message(message, f"messages[{index}]", extras)
    yield from _pairs(body["messages"])


def embedding_refusals(body: Any, count: Callable[[str], int]) -> Iterator[Refusal]:
    """Why the API would refuse a request for embeddings; `count` tells the tokens of a text."""
    if not isinstance(body, dict):
        yield Refusal("The request body is not an object")
    if not isinstance(body.get("model"), str):
        yield Refusal("you must provide a model parameter")
    texts = [body["input"]] if isinstance(body.get("input"), str) else body.get("input")
    yield from _inputs(texts)
    if sum(map(count, texts)) > MOST_INPUT_TOKENS:
        yield Refusal(
            f"Invalid 'input': maximum request size is {MOST_INPUT_TOKENS} tokens per request.",
            "input",
            "max_tokens_per_request",
        )
    if body.get("encoding_format", "float") not in ("float", "base64"):
        yield Refusal(_unsupported(body["encoding_format"], "'float' and 'base64'"),
                      "encoding_format", "invalid_value")  # fmt: skip
    dimensions = body.get("dimensions", 1)
    if not isinstance(dimensions, int) or isinstance(dimensions, bool):
        yield _type("dimensions", int, dimensions)
    if dimensions < 1:
        yield Refusal(f"{dimensions} is less than the minimum of 1 - 'dimensions'", "dimensions")


def _inputs(texts: Any) -> Iterator[Refusal]:
    if not isinstance(texts, list) or not 0 < len(texts) <= MOST_INPUTS:
        yield Refusal("'$.input' is invalid. Please check the API reference.", "input")
    for text in texts:
        if not isinstance(text, str):
            yield Refusal("'$.input' is invalid. Please check the API reference.", "input")
        if not text:
            yield Refusal("Invalid 'input': input cannot be an empty string.", "input")


def _type(param: str, kind: Any, found: Any) -> Refusal:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    wanted = " or ".join(_WORDS[one] for one in kinds)
    return Refusal(
        f"Invalid type for '{param}': expected {wanted}, but got {_WORDS[type(found)]} instead.",
        param,
        "invalid_type",
    )


def _unsupported(found: Any, values: str) -> str:
    return f"Invalid value: '{found}'. Supported values are: {values}."


def _missing(param: str) -> Refusal:
    return Refusal(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")


def _unknown(param: str) -> Refusal:
    return Refusal(f"Unknown parameter: '{param}'.", param, "unknown_parameter")


def _empty(param: str) -> Refusal:
    return Refusal(
        f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead.",
        param,
        "empty_array",
    )


def _parameters(body: Any, extras: Collection[str]) -> Iterator[Refusal]:
    if not isinstance(body, dict):
        yield Refusal("The request body is not an object")
    if "model" not in body:
        yield Refusal("you must provide a model parameter")
    if "messages" not in body:
        yield _missing("messages")
    for name, value in body.items():
        if name in extras:
            continue
        if name not in _PARAMETERS:
            yield Refusal(f"Unrecognized request argument supplied: {name}")
        kind = _PARAMETERS[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            yield _type(name, kind, value)
    for name in ("messages", "tools"):
        if name in body and not body[name]:
            yield _empty(name)


def _settings(body: Body) -> Iterator[Refusal]:
    if "stream_options" in body and not body.get("stream"):
        yield Refusal("The 'stream_options' parameter is only allowed when 'stream' is enabled.",
                      "stream_options")  # fmt: skip
    if "max_tokens" in body and "max_completion_tokens" in body:
        yield Refusal("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not "
                      "supported.")  # fmt: skip
    for name in ("max_tokens", "max_completion_tokens"):
        if body.get(name, 1) < 1:
            yield Refusal(
                f"Invalid '{name}': integer below minimum value. Expected a value >= 1, but got "
                f"{body[name]} instead.",
                name,
                "integer_below_min_value",
            )
    if not 0 <= body.get("temperature", 1) <= 2:
        yield Refusal(
            f"Invalid 'temperature': decimal out of range. Expected a value between 0 and 2, but "
            f"got {body['temperature']} instead.",
            "temperature",
        )
    yield from _choice(body)


def _choice(body: Body) -> Iterator[Refusal]:
    choice = body.get("tool_choice")
    if choice is None:
        return
    if "tools" not in body:
        yield Refusal("Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' "
                      "are specified.", "tool_choice")  # fmt: skip
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            yield Refusal(_unsupported(choice, "'none', 'auto', and 'required'"),
                          "tool_choice", "invalid_value")  # fmt: skip
        return
    if choice.get("type") != "function" or not isinstance(choice.get("function"), dict):
        yield _missing("tool_choice.function")
    name = choice["function"].get("name")
    if name not in [tool["function"]["name"] for tool in body["tools"]]:
        yield Refusal(f"Tool choice '{name}' not found in 'tools' parameter.", "tool_choice")


def _tool(tool: Any, place: str) -> Iterator[Refusal]:
    if not isinstance(tool, dict):
        yield _type(place, dict, tool)
    if "type" not in tool:
        yield _missing(f"{place}.type")
    if tool["type"] != "function":
        yield Refusal(_unsupported(tool["type"], "'function' and 'custom'"), f"{place}.type",
                      "invalid_value")  # fmt: skip
    function = tool.get("function")
    if not isinstance(function, dict):
        yield _missing(f"{place}.function")
        return
    yield from _name(function.get("name"), f"{place}.function.name")
    yield from _schema(function)


def _name(name: Any, place: str) -> Iterator[Refusal]:
    if name is None:
        yield _missing(place)
    if not isinstance(name, str):
        yield _type(place, str, name)
    if not _NAME.match(name):
        yield Refusal(
            f"Invalid '{place}': string does not match pattern. Expected a string that matches "
            "the pattern '^[a-zA-Z0-9_-]+$'.",
            place,
            "invalid_value",
        )
    yield from _length(name, place, _LONGEST_NAME)


def _length(text: str, place: str, most: int) -> Iterator[Refusal]:
    if len(text) > most:
        yield Refusal(
            f"Invalid '{place}': string too long. Expected a string with maximum length {most}, "
            f"but got a string with length {len(text)} instead.",
            place,
            "string_above_max_length",
        )


def _schema(function: dict[str, Any]) -> Iterator[Refusal]:
    if "parameters" not in function:
        return  # a function without parameters
    schema, why = function["parameters"], ""
    if not isinstance(schema, dict):
        why = f"{schema!r} is not of type 'object'"
    elif schema.get("type") != "object":
        kind = schema.get("type")
        why = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    elif not isinstance(schema.get("properties"), dict):
        why = "In context=(), object schema missing properties."
    elif not all(isinstance(part, dict | bool) for part in schema["properties"].values()):
        why = "In context=('properties',), a property is not a schema."
    if why:
        yield Refusal(
            f"Invalid schema for function '{function['name']}': {why}",
            "tools[0].function.parameters",
            "invalid_function_parameters",
        )


def _message(message: Any, place: str, extras: Collection[str]) -> Iterator[Refusal]:
    if not isinstance(message, dict):
        yield _type(place, dict, message)
    role = message.get("role")
    if role is None:
        yield _missing(f"{place}.role")
    if role not in _MESSAGE_FIELDS:
        yield Refusal(_unsupported(role, _ROLES), f"{place}.role", "invalid_value")
    for name in message.keys() - _MESSAGE_FIELDS[role] - set(extras):
        yield _unknown(f"{place}.{name}")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield _missing(f"{place}.tool_call_id")
    if "tool_calls" in message:
        yield from _calls(message["tool_calls"], f"{place}.tool_calls", extras)
    if message.get("content") is None and role == "assistant" and "tool_calls" in message:
        return
    yield from _content(message.get("content"), role, f"{place}.content", extras)


def _content(content: Any, role: str, place: str, extras: Collection[str]) -> Iterator[Refusal]:
    if content is None:
        yield Refusal("Invalid value for 'content': expected a string, got null.", place)
    if not isinstance(content, str | list):
        yield _type(place, (str, list), content)
    if not content:
        # OpenAI takes an empty text, most other servers do not.
        yield _empty(place)
    for at, part in enumerate(content if isinstance(content, list) else ()):
        yield from _part(part, role, f"{place}[{at}]", extras)


def _part(part: Any, role: str, place: str, extras: Collection[str]) -> Iterator[Refusal]:
    if not isinstance(part, dict) or "type" not in part:
        yield _missing(f"{place}.type")
    kind = part["type"]
    if kind not in _PARTS or (kind != "text" and role != "user"):
        allowed = ", ".join(f"'{name}'" for name in _PARTS) if role == "user" else "'text'"
        yield Refusal(_unsupported(kind, allowed), f"{place}.type", "invalid_value")
    field = _PARTS[kind]
    wanted = str if kind == "text" else dict
    if field not in part:
        yield _missing(f"{place}.{field}")
    if not isinstance(part[field], wanted):
        yield _type(f"{place}.{field}", wanted, part[field])
    if kind == "text" and not part["text"]:
        yield _empty(f"{place}.text")
    if kind == "image_url" and not str(part[field].get("url", "")).startswith(("http", "data:")):
        yield Refusal(f"Invalid '{place}.image_url.url'. Expected a valid URL.", place,
                      "invalid_value")  # fmt: skip
    for name in part.keys() - {"type", field} - set(extras):
        yield _unknown(f"{place}.{name}")


def _calls(calls: Any, place: str, extras: Collection[str]) -> Iterator[Refusal]:
    if not isinstance(calls, list):
        yield _type(place, list, calls)
    if not calls:
        yield _empty(place)
    for at, call in enumerate(calls):
        here = f"{place}[{at}]"
        for name in ("id", "type", "function"):
            if not call.get(name):
                yield _missing(f"{here}.{name}")
        for name in call.keys() - _CALL_FIELDS - set(extras):
            yield _unknown(f"{here}.{name}")
        yield from _length(call["id"], f"{here}.id", _LONGEST_ID)
        yield from _name(call["function"].get("name"), f"{here}.function.name")
        arguments = call["function"].get("arguments")
        if not isinstance(arguments, str):
            yield _type(f"{here}.function.arguments", str, arguments)


def _pairs(messages: list[dict[str, Any]]) -> Iterator[Refusal]:
    """Each call answered once, by the messages right after it."""
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        place = f"messages.[{index}].role"
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                yield Refusal(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'.",
                    place,
                )
            open_calls.remove(message["tool_call_id"])
            continue
        yield from _unanswered(open_calls, place)
        open_calls = [call["id"] for call in message.get("tool_calls") or ()]
    yield from _unanswered(open_calls, f"messages.[{len(messages)}].role")


def _unanswered(calls: list[str], place: str) -> Iterator[Refusal]:
    if calls:
        yield Refusal(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(calls),
            place,
        )
