"""What the fake Messages API refuses."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.testing import FakeMessagesAPI
from flowrt.testing.messages_tokens import count_request
from tests.testing.messages import (
    MARK,
    TOOL,
    assistant,
    block,
    body,
    call,
    post,
    result,
    user,
)

THINKING = {"type": "thinking", "thinking": "hm", "signature": "bWFkZSB1cA=="}

REFUSED = {
    "a call that nobody answers": (
        [user("a"), assistant(call("1")), user("b")],
        "`tool_use` ids were found without `tool_result` blocks immediately after: 1",
    ),
    "a call that is answered one message too late": (
        [user("a"), assistant(call("1")), user("b"), assistant("c"), user(result("1"))],
        "`tool_use` ids were found without `tool_result` blocks immediately after: 1",
    ),
    "a result whose call is not in the message before": (
        [user("a"), assistant("b"), user(result("1"))],
        "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: 1",
    ),
    "text before results": (
        [user("a"), assistant(call("1")), user("b", result("1"))],
        "`tool_use` ids were found without `tool_result` blocks immediately after: 1",
    ),
    "text between results": (
        [user("a"), assistant(call("1"), call("2")), user(result("1"), "b", result("2"))],
        "`tool_use` ids were found without `tool_result` blocks immediately after: 2",
    ),
    "a call that is answered twice": (
        [user("a"), assistant(call("1")), user(result("1"), result("1"))],
        "each tool_use must have a single result",
    ),
    "one id for two calls": (
        [user("a"), assistant(call("1"), call("1")), user(result("1"))],
        "`tool_use` ids must be unique",
    ),
    "an error without a word": (
        [user("a"), assistant(call("1")), user(result("1", content="", is_error=True))],
        "content cannot be empty if `is_error` is true",
    ),
    "a first message that is not the user's": ([assistant("a"), user("b")], "first message must"),
    "an empty text": ([user("")], "text content blocks must be non-empty"),
    "a blank text": ([user(" \n")], "must contain non-whitespace text"),
    "a blank text inside a result": (
        [user("a"), assistant(call("1")), user(result("1", content=[block("")]))],
        "text content blocks must be non-empty",
    ),
    "a message without content": ([user("a"), assistant(), user("b")], "non-empty content"),
    "white space at the end of the last assistant message": (
        [user("a"), assistant("b\n")],
        "final assistant content cannot end with trailing whitespace",
    ),
    "an assistant message at the end": (
        [user("a"), assistant("b")],
        "does not support assistant message prefill",
    ),
    "two user messages in a row": ([user("a"), user("b")], 'multiple "user" roles in a row'),
    "thinking that was made up": (
        [user("a"), assistant(THINKING), user("b")],
        "Invalid `signature`",
    ),
    "thinking without a signature": (
        [user("a"), assistant({"type": "thinking", "thinking": "hm"}), user("b")],
        "messages.1.content.0.thinking.signature: Field required",
    ),
    "a call by the user": ([user("a", call("1"))], "may not be in user messages"),
    "a made-up tool name in a call": (
        [user("a"), assistant({**call("1"), "name": "a.b"}), user(result("1"))],
        "messages.1.content.0.tool_use.name: String should match pattern",
    ),
    "arguments that are no object": (
        [user("a"), assistant({**call("1"), "input": "x"}), user(result("1"))],
        "messages.1.content.0.tool_use.input: Input should be",
    ),
    "a role that does not exist": (
        [user("a"), {"role": "tool", "content": "b"}],
        "Input should be",
    ),
    "content that is no list": (
        [{"role": "user", "content": 7}],
        "messages.0.content: Input should",
    ),
    "a block without a type": ([user({"text": "a"})], "messages.0.content.0.type: Field required"),
    "a message that is no object": (["hello"], "messages.0.role: Field required"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_refuses_messages_with(api: FakeMessagesAPI, name: str) -> None:
    messages, text = REFUSED[name]

    status, answer, _ = post(api, {"model": "m", "max_tokens": 9, "messages": messages})

    assert (400, "invalid_request_error") == (status, answer["error"]["type"])
    assert text in answer["error"]["message"]
    assert [answer["error"]["message"]] == api.refused


BUDGET = {"type": "enabled", "budget_tokens": 1024}

REFUSED_BODIES: dict[str, tuple[Any, str]] = {
    "no messages": ({**body(), "messages": []}, "at least one message is required"),
    "no max_tokens": ({"model": "m", "messages": [user("a")]}, "max_tokens: Field required"),
    "no model": ({"max_tokens": 1, "messages": [user("a")]}, "model: Field required"),
    "a limit that is no number": (body(max_tokens="9"), "max_tokens: Input should be"),
    "a limit below zero": (body(max_tokens=-1), "greater than or equal to 0"),
    "a dot in a tool's name": (body(tools=[{**TOOL, "name": "a.b"}]), "tools.0.custom.name"),
    "a tool's name that ends in a newline": (
        body(tools=[{**TOOL, "name": "a\n"}]),
        "tools.0.custom",
    ),
    "a tool's name of 129 letters": (
        body(tools=[{**TOOL, "name": "a" * 129}]),
        "tools.0.custom.name",
    ),
    "two tools of one name": (body(tools=[TOOL, TOOL]), "Tool names must be unique"),
    "a tool without a schema": (body(tools=[{"name": "look"}]), "input_schema: Field required"),
    "a blank system text": (body(system=[block(" ")]), "must contain non-whitespace text"),
    "five breakpoints": (body(user(*[{**block("a"), **MARK}] * 5)), "Found 5"),
    "a thinking budget above the limit": (body(thinking=BUDGET), "`max_tokens` must be greater"),
    "a temperature while thinking": (
        body(thinking=BUDGET, max_tokens=4096, temperature=0.5),
        "`temperature` may only be set to 1",
    ),
    "a forced call while thinking": (
        body(thinking=BUDGET, max_tokens=4096, tools=[TOOL], tool_choice={"type": "any"}),
        "Thinking may not be enabled when tool_choice forces tool use",
    ),
    "a choice among no tools": (body(tool_choice={"type": "auto"}), "while providing tools"),
    "a list instead of a body": ([], "not an object"),
    "no JSON": (b"{", "not valid JSON"),
    "no UTF-8": (b'{"model": "\xff"}', "not valid JSON"),
    "half a surrogate pair": (b'{"a": "\xed\xa0\x80"}', "not valid JSON"),
}


@pytest.mark.parametrize("name", REFUSED_BODIES)
def test_it_refuses_a_body_with(api: FakeMessagesAPI, name: str) -> None:
    sent, text = REFUSED_BODIES[name]

    status, answer, _ = post(api, sent)

    assert 400 == status
    assert text in answer["error"]["message"]


def test_it_takes_a_conversation_with_everything_in_it(api: FakeMessagesAPI) -> None:
    sent = body(
        user("a", {"type": "image", "source": {"type": "url", "url": "u"}}),
        assistant("b ", call("1"), call("2"), {"type": "new_block", "x": 1}),
        user(result("2"), result("1", content=[block("found")]), "c"),
        assistant("ends in space "),
        {"role": "user", "content": "plain text"},
        system="be brief",
        tools=[TOOL, {"type": "memory_20250818", "name": "memory"}],
    )

    assert (200, []) == (post(api, sent)[0], api.refused)


def test_it_can_be_as_lax_as_the_api_about_roles() -> None:
    with FakeMessagesAPI(reply=lambda body: "fine", alternate=False, prefill=True) as api:
        assert 200 == post(api, body(user("a"), user("b"), assistant("c")))[0]
        assert 400 == post(api, body(user("a"), assistant("c ")))[0]


def test_thinking_is_taken_back_only_as_it_was_sent_and_by_the_same_model() -> None:
    raw = {"type": "redacted_thinking", "data": "b3BhcXVl"}
    with FakeMessagesAPI([{"thinking": "hm", "text": "a"}, {"content": [raw]}]) as api:
        api.add(*["fine"] * 4)
        sent = post(api, body())[1]["content"][0]
        assert [raw] == post(api, body())[1]["content"]
        taken = [
            post(api, {**body(user("a"), assistant(block), user("b")), "model": model})[0]
            for block, model in (
                (sent, "m"),
                (raw, "m"),
                (sent, "other"),
                (raw, "other"),
                ({**sent, "thinking": "ha"}, "m"),
                ({**raw, "data": "other"}, "m"),
            )
        ]

    assert [200, 200, 400, 400, 400, 400] == taken


def test_thinking_outlives_the_fake_that_sent_it(api: FakeMessagesAPI) -> None:
    with FakeMessagesAPI([{"thinking": "hm", "text": "a"}]) as first:
        sent = post(first, body())[1]["content"]

    assert 200 == post(api, body(user("a"), assistant(*sent), user("b")))[0]


def test_a_prompt_over_the_window_is_refused_with_both_sizes() -> None:
    sent = body(user("word " * 100))
    with FakeMessagesAPI(reply=lambda body: "fine", window=count_request(sent) - 1) as api:
        status, answer, _ = post(api, sent)

    size = count_request(sent)
    assert 400 == status
    assert f"prompt is too long: {size} tokens > {size - 1} maximum" == answer["error"]["message"]


# Who may ask, and where


@pytest.mark.parametrize("headers", [{"x-api-key": "k"}, {"authorization": "Bearer k"}])
def test_both_ways_to_authenticate_are_taken(api: FakeMessagesAPI, headers: dict[str, str]) -> None:
    assert 200 == post(api, body(), headers=headers)[0]


@pytest.mark.parametrize("headers", [{}, {"authorization": "Basic k"}, {"x-api-key": "other"}])
def test_a_request_without_the_right_key_is_refused(headers: dict[str, str]) -> None:
    with FakeMessagesAPI(["fine"], api_key="k") as api:
        status, answer, _ = post(api, body(), headers=headers)

    assert (401, "authentication_error") == (status, answer["error"]["type"])


def test_other_paths_and_methods_are_refused(api: FakeMessagesAPI) -> None:
    assert 404 == post(api, body(), path="/v1/complete")[0]
    assert 405 == post(api, body(), method="PUT")[0]
