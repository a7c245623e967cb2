"""What the fake Chat Completions and Embeddings APIs refuse."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.testing import FakeCompletionsAPI
from tests.testing.completions import body, calling, post, result, tool, user


def call(**more: Any) -> dict[str, Any]:
    (one,) = calling("1")["tool_calls"]
    return {"role": "assistant", "content": None, "tool_calls": [{**one, **more}]}


FUNCTION = {"name": "look", "arguments": "{}"}
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}

REFUSED = {
    "a tool message without its call": (
        body(user("a"), result("1")),
        "messages with role 'tool' must be a response to a preceeding message",
    ),
    "a tool message that answers twice": (
        body(user("a"), calling("1"), result("1"), result("1")),
        "messages with role 'tool' must be a response to a preceeding message",
    ),
    "a call that nobody answers": (
        body(user("a"), calling("1"), user("b")),
        "did not have response messages: 1",
    ),
    "a call that is not answered yet": (
        body(user("a"), calling("1", "2"), result("1")),
        "did not have response messages: 2",
    ),
    "a call that is answered too late": (
        body(user("a"), calling("1"), user("b"), result("1")),
        "did not have response messages: 1",
    ),
    "an empty text": (body(user("")), "Invalid 'messages[0].content'"),
    "an empty list": (body(user([])), "Invalid 'messages[0].content'"),
    "no content": (body(user(None)), "expected a string, got null"),
    "an assistant that says and calls nothing": (
        body(user("a"), {"role": "assistant", "content": None}),
        "expected a string, got null",
    ),
    "no calls in a list of calls": (
        body(user("a"), {"role": "assistant", "content": "b", "tool_calls": []}),
        "Invalid 'messages[1].tool_calls': empty array",
    ),
    "an unknown role": (body({"role": "robot", "content": "a"}), "Invalid value: 'robot'"),
    "no role": (body({"content": "a"}), "Missing required parameter: 'messages[0].role'"),
    "a message that is none": (body("hi"), "Invalid type for 'messages[0]'"),
    "a field of another API": (
        body({**user("a"), "cache_control": {}}),
        "Unknown parameter: 'messages[0].cache_control'",
    ),
    "a field of another API in a part": (
        body(user([{"type": "text", "text": "a", "cache_control": {}}])),
        "Unknown parameter: 'messages[0].content[0].cache_control'",
    ),
    "a parameter of another API": (body(system="a"), "Unrecognized request argument supplied"),
    "thinking that it never sent": (
        body(user("a"), {"role": "assistant", "content": "b", "reasoning_content": "c"}),
        "Unknown parameter: 'messages[1].reasoning_content'",
    ),
    "a picture in a result": (
        body(user("a"), calling("1"), result("1", [PICTURE])),
        "Invalid value: 'image_url'. Supported values are: 'text'",
    ),
    "a picture without an address": (
        body(user([{"type": "image_url", "image_url": {"url": "a.png"}}])),
        "Expected a valid URL",
    ),
    "a part without its text": (body(user([{"type": "text"}])), "messages[0].content[0].text"),
    "a call without an id": (body(user("a"), call(id="")), "messages[1].tool_calls[0].id"),
    "a call with a long id": (body(user("a"), call(id="x" * 41)), "maximum length 40"),
    "arguments that are no text": (
        body(user("a"), call(function={**FUNCTION, "arguments": {}})),
        "Invalid type for 'messages[1].tool_calls[0].function.arguments'",
    ),
    "a bad name in a call": (
        body(user("a"), call(function={**FUNCTION, "name": "look up"})),
        "string does not match pattern",
    ),
    "a bad tool name": (body(tools=[tool("look up")]), "string does not match pattern"),
    "a long tool name": (body(tools=[tool("x" * 65)]), "maximum length 64"),
    "a schema of the wrong type": (body(tools=[tool(type="string")]), "got 'type: \"string\"'"),
    "a schema without properties": (
        body(tools=[tool(properties=None)]),
        "object schema missing properties",
    ),
    "a tool of the Messages API": (
        body(tools=[{"name": "look", "input_schema": {}}]),
        "Missing required parameter: 'tools[0].type'",
    ),
    "no tools in a list of tools": (body(tools=[]), "Invalid 'tools': empty array"),
    "a choice without tools": (body(tool_choice="auto"), "only allowed when 'tools'"),
    "a choice of the Messages API": (
        body(tools=[tool()], tool_choice={"type": "any"}),
        "Missing required parameter: 'tool_choice.function'",
    ),
    "a choice that nobody knows": (body(tools=[tool()], tool_choice="any"), "Invalid value: 'any'"),
    "a choice of a tool that is not there": (
        body(tools=[tool()], tool_choice={"type": "function", "function": {"name": "x"}}),
        "Tool choice 'x' not found",
    ),
    "options of a stream that is none": (
        body(stream_options={"include_usage": True}),
        "only allowed when 'stream' is enabled",
    ),
    "two lengths": (body(max_tokens=1, max_completion_tokens=1), "at the same time"),
    "no length": (body(max_tokens=0), "integer below minimum value"),
    "a length that is no number": (body(max_tokens="9"), "expected an integer, but got a string"),
    "a flag as a number": (body(max_tokens=True), "expected an integer, but got a boolean"),
    "a temperature out of range": (body(temperature=3), "decimal out of range"),
    "no model": ({"messages": [user("a")]}, "you must provide a model parameter"),
    "no messages": ({"model": "m"}, "Missing required parameter: 'messages'"),
    "an empty conversation": ({"model": "m", "messages": []}, "Invalid 'messages': empty array"),
    "a conversation that is none": ({"model": "m", "messages": "a"}, "expected an array"),
    "a list": ([], "not an object"),
    "no JSON": (b"{", "could not parse the JSON body"),
}


@pytest.mark.parametrize(("sent", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_the_api_refuses_is_refused_with_its_text(sent: Any, expected: str) -> None:
    with FakeCompletionsAPI(reply=lambda _: "fine") as api:
        status, answer, _ = post(api, sent)

    assert 400 == status
    assert expected in answer["error"]["message"]
    assert "invalid_request_error" == answer["error"]["type"]
    assert [answer["error"]["message"]] == api.refused


TAKEN = {
    "roles of one kind in a row": body(user("a"), user("b")),
    "an assistant at the end": body(user("a"), {"role": "assistant", "content": "b"}),
    "results in any order": body(user("a"), calling("1", "2"), result("2"), result("1")),
    "a tool without parameters": body(tools=[{"type": "function", "function": {"name": "a"}}]),
    "a picture": body(user([PICTURE, {"type": "text", "text": "a"}])),
    "a developer": body({"role": "developer", "content": "a"}, user("b")),
    "a forced tool": body(
        tools=[tool()], tool_choice={"type": "function", "function": {"name": "look"}}
    ),
    "an integer temperature": body(temperature=1),
}


@pytest.mark.parametrize("sent", TAKEN.values(), ids=TAKEN)
def test_what_the_api_takes_is_taken(sent: Any) -> None:
    with FakeCompletionsAPI(reply=lambda _: "fine") as api:
        status, answer, _ = post(api, sent)

    assert 200 == status, answer


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({}, "You didn't provide an API key"),
        ({"x-api-key": "right"}, "You didn't provide an API key"),
        ({"authorization": "Bearer wrong"}, "Incorrect API key provided"),
    ],
)
@pytest.mark.parametrize("path", ["/chat/completions", "/embeddings"])
def test_a_key_that_is_missing_or_wrong_is_refused(
    header: dict[str, str], expected: str, path: str
) -> None:
    with FakeCompletionsAPI(["fine"], api_key="right") as api:
        status, answer, _ = post(api, body(), headers=header, path=path)

    assert 401 == status
    assert expected in answer["error"]["message"]


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [("/messages", "POST", 404), ("/chat/completions", "GET", 405), ("/embeddings", "GET", 405)],
)
def test_an_address_that_the_api_does_not_have_is_refused(
    path: str, method: str, status: int
) -> None:
    with FakeCompletionsAPI(["fine"]) as api:
        assert status == post(api, body(), path=path, method=method)[0]


def test_a_prompt_over_the_window_is_refused_with_its_code() -> None:
    with FakeCompletionsAPI(["fine"], window=100) as api:
        status, answer, _ = post(api, body(user("word " * 200)))

    assert (400, "context_length_exceeded") == (status, answer["error"]["code"])


def test_what_a_server_takes_besides_can_be_named() -> None:
    sent = body({**user("a"), "cache_control": {}}, usage={"include": True})
    with FakeCompletionsAPI(["fine"], extras=["cache_control", "usage"]) as api:
        assert 200 == post(api, sent)[0]


def test_what_it_thought_is_taken_back_unchanged_by_the_same_model() -> None:
    with FakeCompletionsAPI([{"thinking": "hm", "text": "so"}, "fine", "fine"]) as api:
        message = post(api, body())[1]["choices"][0]["message"]
        statuses = [
            post(api, {**body(user("a"), answered, user("b")), "model": model})[0]
            for answered, model in (
                (message, "m"),
                ({**message, "reasoning_content": "hm!"}, "m"),
                (message, "other"),
            )
        ]

    assert [200, 400, 400] == statuses


EMBEDDINGS = {
    "no texts": ({"model": "e", "input": []}, "'$.input' is invalid"),
    "no input": ({"model": "e"}, "'$.input' is invalid"),
    "an empty text": ({"model": "e", "input": ["a", ""]}, "cannot be an empty string"),
    "a text that is none": ({"model": "e", "input": ["a", 3]}, "'$.input' is invalid"),
    "too many texts": ({"model": "e", "input": ["a"] * 2049}, "'$.input' is invalid"),
    "too much text": ({"model": "e", "input": ["a" * 600_000] * 2}, "300000 tokens per request"),
    "no model": ({"input": "a"}, "you must provide a model parameter"),
    "an unknown encoding": ({"model": "e", "input": "a", "encoding_format": "hex"}, "'hex'"),
    "no dimensions": ({"model": "e", "input": "a", "dimensions": 0}, "less than the minimum"),
    "odd dimensions": ({"model": "e", "input": "a", "dimensions": "8"}, "expected an integer"),
    "a list": ([], "not an object"),
}


@pytest.mark.parametrize(("sent", "expected"), EMBEDDINGS.values(), ids=EMBEDDINGS)
def test_what_the_embeddings_api_refuses_is_refused(sent: Any, expected: str) -> None:
    with FakeCompletionsAPI() as api:
        status, answer, _ = post(api, sent, path="/embeddings")

    assert 400 == status
    assert expected in answer["error"]["message"]
