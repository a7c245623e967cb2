"""What the fake Messages API records, counts and bills."""

from __future__ import annotations

import json

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
        body(user("hi"), assistant(call("1")), user(result("1", content=[block(long)]))),
    ):
        assert plain + 300 < count_request(fat) < plain + 400
    assert plain + 1500 == count_request(body(user("hi", picture)))


def test_a_marked_prefix_is_written_once_and_then_read(api: FakeMessagesAPI) -> None:
    system = [{**block("long " * 100), **MARK}]
    first = {**block("first"), **MARK}

    usages = [
        post(api, body(*messages, system=system))[1]["usage"]
        for messages in (
            [user(first)],
            [user(first)],
            [user("first"), assistant("reply"), user({**block("second"), **MARK})],
            [user({**block("changed"), **MARK})],
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
