from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowrt.llm.anthropic_reply import ReplyStream, read_reply
from flowrt.llm.failures import BrokenReply
from flowrt.llm.model import Delta, Usage
from flowrt.testing.messages_script import stream_events

CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "hm\u2028\x85\r\n", "signature": "c2ln"},
    {"type": "text", "text": 'data: {"type": "error"}\n\nevent: error\n', "citations": [{"a": 1}]},
    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"q": "é😀"}},
    {"type": "new_block", "payload": [1, None]},
]
USAGE = {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": 3}


def encode(events: Any) -> bytes:
    return b"".join(
        b"event: x\r\ndata: " + json.dumps(event, ensure_ascii=False).encode() + b"\r\n\r\n"
        for event in events
    )


STREAM = encode(stream_events(CONTENT, "tool_use", "m", USAGE))


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM)), max_size=30))
def test_a_stream_may_be_cut_into_packets_anywhere(cuts: list[int]) -> None:
    stream = ReplyStream(None)
    places = [0, *sorted(cuts), len(STREAM)]
    for start, end in pairwise(places):
        stream.feed(STREAM[start:end])

    assert CONTENT == stream.reply().content


def test_figures_of_the_end_replace_those_of_the_beginning_and_the_others_stay() -> None:
    stream = ReplyStream(None)

    stream.feed(STREAM)

    assert Usage(input_tokens=7, output_tokens=5, cached_tokens=3) == stream.reply().usage


def test_thinking_tokens_are_reported_where_the_provider_does() -> None:
    usage = {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}}
    reply = read_reply({"content": [], "stop_reason": "end_turn", "model": "m", "usage": usage})

    assert Usage(output_tokens=9, thinking_tokens=4) == reply.usage


def test_a_provider_that_reports_no_usage_leaves_none() -> None:
    assert read_reply({"content": [], "stop_reason": "end_turn"}).usage is None


@pytest.mark.parametrize("arguments", ['{"to": "al', "[1]", '"text"', "{'a': 1}"])
def test_arguments_that_are_no_object_count_as_cut_off(arguments: str) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "send", "input": arguments}
    stream = ReplyStream(None)

    stream.feed(encode(stream_events([call], "tool_use", "m", USAGE)))

    reply = stream.reply()
    assert "max_tokens" == reply.stop_reason
    assert [{**call, "input": {"INVALID_JSON": arguments}}] == reply.content


def test_a_call_without_arguments_has_an_empty_object() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "send", "input": {}}
    stream = ReplyStream(None)

    stream.feed(encode(stream_events([{**call, "input": ""}], "tool_use", "m", USAGE)))

    assert [call] == stream.reply().content


def test_a_stream_that_ends_before_its_end_is_broken() -> None:
    for end in range(0, len(STREAM) - 5, 11):
        stream = ReplyStream(None)
        stream.feed(STREAM[:end])
        with pytest.raises(BrokenReply, match="ended before"):
            stream.reply()


def test_a_stream_that_nobody_was_told_of_has_delivered_nothing() -> None:
    deltas: list[Delta] = []
    told, untold = ReplyStream(deltas.append), ReplyStream(None)

    told.feed(STREAM)
    untold.feed(STREAM)

    assert (True, False) == (told.delivered, untold.delivered)


START = {"type": "message_start", "message": {"model": "m"}}


@pytest.mark.parametrize(
    "event",
    [
        {},
        [],
        "text",
        None,
        {"type": "message_start"},
        {"type": "message_start", "message": "text"},
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_start", "index": 0, "content_block": None},
        {"type": "content_block_delta", "index": 5, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_delta", "index": 0, "delta": {}},
        {"type": "content_block_stop"},
        {"type": "message_delta"},
        {"type": "message_delta", "delta": {}, "usage": [1]},
    ],
)
def test_a_malformed_event_is_a_broken_reply(event: Any) -> None:
    stream = ReplyStream(None)
    data = b"data: " + json.dumps(event).encode() + b"\n\n"

    with pytest.raises(BrokenReply, match="malformed"):
        stream.feed(encode([START]) + data)


def test_an_event_that_is_not_json_is_a_broken_reply() -> None:
    with pytest.raises(BrokenReply, match="malformed"):
        ReplyStream(None).feed(b"data: <html>\n\n")


def test_an_event_of_a_new_type_is_passed_over() -> None:
    events = list(stream_events(CONTENT, "tool_use", "m", USAGE))
    stream = ReplyStream(None)

    stream.feed(encode([*events[:4], {"type": "new_event"}, *events[4:]]))

    assert CONTENT == stream.reply().content


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        "text",
        {},
        {"content": []},
        {"content": "text", "stop_reason": "end_turn"},
        {"content": [], "stop_reason": None},
        {"content": ["text"], "stop_reason": "end_turn"},
        {"content": [{"text": "x"}], "stop_reason": "end_turn"},
        {"content": [{"type": "text"}], "stop_reason": "end_turn"},
        {"content": [{"type": "text", "text": None}], "stop_reason": "end_turn"},
        {"content": [{"type": "thinking"}], "stop_reason": "end_turn"},
        {"content": [{"type": "tool_use", "name": "x", "input": {}}], "stop_reason": "tool_use"},
        {"content": [{"type": "tool_use", "id": "x", "input": {}}], "stop_reason": "tool_use"},
        {"content": [{"type": "tool_use", "id": "x", "name": "x"}], "stop_reason": "tool_use"},
        {"content": [], "stop_reason": "end_turn", "usage": "many"},
        {"content": [], "stop_reason": "end_turn", "usage": {"input_tokens": "many"}},
    ],
)
def test_what_is_no_message_is_a_broken_reply(message: Any) -> None:
    with pytest.raises(BrokenReply):
        read_reply(message)
