from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from flowrt.testing import FakeMessagesAPI, FakeReply, Gate
from flowrt.testing.messages_tokens import count_request


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [_block(item) for item in content]}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [_block(item) for item in content]}


def _block(item: Any) -> dict[str, Any]:
    return {"type": "text", "text": item} if isinstance(item, str) else item


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "look", "input": {}}


def result(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": "found", **more}


def body(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": list(messages) or [user("hi")], **more}


@pytest.fixture
def api() -> Iterator[FakeMessagesAPI]:
    with FakeMessagesAPI(reply=lambda body: "fine") as fake:
        yield fake


def post(
    api: FakeMessagesAPI,
    sent: Any,
    *,
    path: str = "/v1/messages",
    headers: dict[str, str] | None = None,
    method: str = "POST",
) -> tuple[int, Any, http.client.HTTPMessage]:
    """Status, body (decoded where it is JSON) and headers of the answer to `sent`."""
    connection = http.client.HTTPConnection(urlsplit(api.base_url).netloc, timeout=10)
    try:
        data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        connection.request(method, path, data, {"x-api-key": "k"} if headers is None else headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        parsed = json.loads(text) if answer.headers["content-type"] == "application/json" else text
        return answer.status, parsed, answer.headers
    finally:
        connection.close()


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:")]


# What it refuses

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
        [user("a"), assistant(call("1")), user(result("1", content=[_block("")]))],
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


TOOL = {"name": "look", "input_schema": {"type": "object"}}
MARK = {"cache_control": {"type": "ephemeral"}}
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
    "a blank system text": (body(system=[_block(" ")]), "must contain non-whitespace text"),
    "five breakpoints": (body(user(*[{**_block("a"), **MARK}] * 5)), "Found 5"),
    "a thinking budget above the limit": (body(thinking=BUDGET), "`max_tokens` must be greater"),
    "a temperature while thinking": (
        body(thinking=BUDGET, max_tokens=4096, temperature=0.5),
        "`temperature` may only be set to 1",
    ),
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
        user(result("2"), result("1", content=[_block("found")]), "c"),
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


# What it answers


def test_replies_are_played_in_order_and_then_the_function_is_asked() -> None:
    with FakeMessagesAPI(["one", {"text": "two"}, FakeReply(text="three")]) as api:
        api.add("four")
        texts = [post(api, body())[1]["content"][0]["text"] for _ in range(4)]

    assert ["one", "two", "three", "four"] == texts


def test_a_condition_is_looked_at_first_and_may_hold_again_and_again() -> None:
    replies = ["other", {"when": 'request.lastUserText == "ping"', "text": "pong"}]
    with FakeMessagesAPI(replies) as api:
        texts = [
            post(api, body(user(text)))[1]["content"][0]["text"] for text in ("ping", "x", "ping")
        ]

    assert ["pong", "other", "pong"] == texts


def test_a_request_that_the_script_does_not_know_is_refused_and_says_so() -> None:
    with FakeMessagesAPI(["one"]) as api:
        post(api, body())
        status, answer, _ = post(api, body())

    assert 400 == status
    assert "no reply for request 2" in answer["error"]["message"]


def test_a_reply_function_that_fails_says_so_in_the_answer() -> None:
    def fail(body: dict[str, Any]) -> Any:
        raise AssertionError("not what I expected")

    with FakeMessagesAPI(reply=fail) as api:
        status, answer, headers = post(api, body())

    assert (500, "false") == (status, headers["x-should-retry"])
    assert "not what I expected" in answer["error"]["message"]


def test_a_message_has_the_shape_of_the_real_one(api: FakeMessagesAPI) -> None:
    api.add({"toolCalls": [{"name": "look", "input": {"q": 1}, "id": "toolu_1"}]})

    _, answer, headers = post(api, body())

    answer["id"] = answer["id"][:4]
    assert {
        "id": "msg_",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"q": 1}}],
        "stop_reason": "tool_use",
        "stop_sequence": None,
    } == {key: value for key, value in answer.items() if key != "usage"}
    assert headers["request-id"].startswith("req_")


def test_an_error_has_the_shape_of_the_real_one(api: FakeMessagesAPI) -> None:
    api.add({"error": 529, "message": "Overloaded", "headers": {"Retry-After": "3"}})

    status, answer, headers = post(api, body())

    request_id = headers["request-id"]
    assert (529, "3") == (status, headers["retry-after"])
    assert {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"},
        "request_id": request_id,
    } == answer


def test_a_stream_has_the_events_of_the_real_one_in_its_order(api: FakeMessagesAPI) -> None:
    api.add({"thinking": "hm", "text": "hello"})

    _, text, headers = post(api, body(stream=True))

    assert "text/event-stream" == headers["content-type"]
    assert [
        "message_start",
        "ping",
        "content_block_start",
        "thinking_delta",
        "signature_delta",
        "content_block_stop",
        "content_block_start",
        "text_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ] == [event.get("delta", {}).get("type") or event["type"] for event in events(text)]


def test_an_overload_comes_after_as_many_events_as_asked_for(api: FakeMessagesAPI) -> None:
    api.add({"text": "hello", "streamError": 2})

    found = events(post(api, body(stream=True))[1])

    assert ["message_start", "ping", "error"] == [event["type"] for event in found]
    assert "overloaded_error" == found[2]["error"]["type"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_connection_breaks_where_the_script_says(api: FakeMessagesAPI, stream: bool) -> None:
    api.add({"text": "hello", "disconnect": 1 if stream else 0})

    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        post(api, body(stream=stream))

    assert 200 == post(api, body())[0]


def test_a_held_request_is_answered_when_the_gate_opens(api: FakeMessagesAPI) -> None:
    gate = Gate()
    api.add({"text": "late", "hold": gate})
    found: list[int] = []
    client = threading.Thread(target=lambda: found.append(post(api, body())[0]))
    client.start()

    gate.wait()
    assert [] == found
    gate.open()
    client.join(10)

    assert [200] == found


def test_a_held_error_is_answered_when_the_gate_opens(api: FakeMessagesAPI) -> None:
    gate = Gate()
    gate.open()
    api.add({"error": 529, "hold": gate})

    assert 529 == post(api, body())[0]


async def test_a_client_that_hangs_up_is_noticed(api: FakeMessagesAPI) -> None:
    gate = Gate()
    api.add({"text": "late", "hold": gate})
    data = json.dumps(body()).encode()
    port = urlsplit(api.base_url).port
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: {len(data)}"
    writer.write(head.encode() + b"\r\n\r\n" + data)
    await gate.reached()

    writer.close()
    await writer.wait_closed()

    await api.requests[0].abandoned()


def test_closing_breaks_off_what_is_still_held() -> None:
    gate = Gate()
    failed: list[Exception] = []

    def ask(fake: FakeMessagesAPI) -> None:
        try:
            post(fake, body())
        except (http.client.HTTPException, ConnectionError) as error:
            failed.append(error)

    with FakeMessagesAPI([{"text": "never", "hold": gate}]) as api:
        client = threading.Thread(target=ask, args=(api,))
        client.start()
        gate.wait()
    client.join(10)
    gate.open()

    assert 1 == len(failed)


# What it records and counts


def test_requests_are_kept_as_they_came(api: FakeMessagesAPI) -> None:
    post(api, body(user("é")), headers={"X-API-Key": "k", "X-Own": "Value"})
    post(api, b"{")

    first, second = api.requests
    assert body(user("é")) == first.body
    assert json.dumps(body(user("é"))).encode() == first.raw
    assert "Value" == first.headers["x-own"]
    assert (200, 400) == (first.status, second.status)
    assert second.body is None
    assert first.at <= second.at


def test_counting_tokens_agrees_with_what_is_billed(api: FakeMessagesAPI) -> None:
    sent = body(user("count me"), system="be brief", tools=[TOOL])
    del sent["max_tokens"]

    _, counted, _ = post(api, sent, path="/v1/messages/count_tokens")
    _, answer, _ = post(api, {**sent, "max_tokens": 9})

    assert counted["input_tokens"] == answer["usage"]["input_tokens"]
    assert (1, 1) == (len(api.counts), len(api.requests))


def test_counting_refuses_what_sending_would_refuse(api: FakeMessagesAPI) -> None:
    sent = body(user("a"), assistant(call("1")), user("b"))

    assert 400 == post(api, sent, path="/v1/messages/count_tokens")[0]


def test_everything_in_a_request_is_counted(api: FakeMessagesAPI) -> None:
    long = "x" * 1000
    plain = count_request(body())
    picture = {"type": "image", "source": {"type": "base64", "data": long * 1000}}

    for fat in (
        body(system=long),
        body(tools=[{**TOOL, "description": long}]),
        body(user("hi", long)),
        body(user("hi"), assistant({**call("1"), "input": {"q": long}}), user(result("1"))),
        body(user("hi"), assistant(call("1")), user(result("1", content=long))),
        body(user("hi"), assistant(call("1")), user(result("1", content=[_block(long)]))),
    ):
        assert plain + 300 < count_request(fat) < plain + 400
    assert plain + 1500 == count_request(body(user("hi", picture)))


def test_a_marked_prefix_is_written_once_and_then_read(api: FakeMessagesAPI) -> None:
    system = [{**_block("long " * 100), **MARK}]
    first = {**_block("first"), **MARK}

    usages = [
        post(api, body(*messages, system=system))[1]["usage"]
        for messages in (
            [user(first)],
            [user(first)],
            [user("first"), assistant("reply"), user({**_block("second"), **MARK})],
            [user({**_block("changed"), **MARK})],
        )
    ]

    written = [usage["cache_creation_input_tokens"] for usage in usages]
    read = [usage["cache_read_input_tokens"] for usage in usages]
    assert 0 == read[0]
    assert (0, written[0]) == (written[1], read[1])
    assert read[2] == written[0]  # the conversation went on: all of it is read again
    assert 0 < read[3] < written[0]  # the system prompt alone is still known


def test_without_marks_nothing_is_cached(api: FakeMessagesAPI) -> None:
    usages = [post(api, body())[1]["usage"] for _ in range(2)]

    assert [0, 0] == [usage["cache_read_input_tokens"] for usage in usages]


def test_a_scripted_usage_is_reported_as_it_is(api: FakeMessagesAPI) -> None:
    api.add({"text": "hi", "usage": {"inputTokens": 5, "outputTokens": 3, "cachedTokens": 2}})

    assert {
        "input_tokens": 5,
        "output_tokens": 3,
        "cache_read_input_tokens": 2,
        "cache_creation_input_tokens": 0,
    } == post(api, body())[1]["usage"]


def test_an_entry_with_a_misspelt_field_is_an_error() -> None:
    with pytest.raises(ValueError, match="txet"):
        FakeMessagesAPI([{"txet": "hi"}])
