"""What the fake Messages API answers, and how it holds, breaks and fails."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest

from flowrt.testing import FakeMessagesAPI, FakeReply, Gate
from tests.testing.messages import body, events, post, user


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
