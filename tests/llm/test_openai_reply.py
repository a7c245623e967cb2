"""Replies of servers that are not quite OpenAI."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flowrt.llm.failures import BrokenReply
from flowrt.llm.model import Delta, Reply
from flowrt.llm.openai_reply import ReplyStream, read_reply, read_usage
from tests.llm.openai_calls import DONE, SIGNATURE, chunk, streamed


def whole(message: Any, finish: str | None = "stop", **more: Any) -> Reply:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return read_reply({"model": "m", "choices": [choice], **more}, SIGNATURE)


def calls(*pieces: Any) -> bytes:
    return chunk({"tool_calls": list(pieces)})


def piece(name: str = "", arguments: str = "", **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": name, "arguments": arguments}}


def told(reply: Reply) -> list[tuple[str, Any]]:
    return [(call["name"], call["input"]) for call in reply.tool_calls]


def test_events_may_come_in_any_pieces() -> None:
    text = b": comment\r\n" + chunk({"content": "a\u2028b"}) + chunk({}, "stop") + DONE
    for size in (1, 2, 7, 64):
        reply = streamed(*(text[at : at + size] for at in range(0, len(text), size)))
        assert "a\u2028b" == reply.text


def test_a_stream_that_ends_without_done_has_ended_with_its_reason() -> None:
    assert "hi" == streamed(chunk({"content": "hi"}), chunk({}, "stop")).text


def test_a_stream_that_is_done_without_a_reason_has_ended() -> None:
    reply = streamed(calls(piece("look", "{}", index=0, id="a")), DONE)

    assert "tool_use" == reply.stop_reason


def test_a_stream_that_just_ends_is_broken() -> None:
    with pytest.raises(BrokenReply, match="ended before"):
        streamed(chunk({"content": "hi"}))


def test_parallel_calls_that_all_have_number_0_are_told_apart_by_their_ids() -> None:
    reply = streamed(
        calls(piece("one", '{"a":1}', index=0, id="x")),
        calls(piece("two", '{"b":2}', index=0, id="y")),
        DONE,
    )

    assert [("one", {"a": 1}), ("two", {"b": 2})] == told(reply)
    assert ["x", "y"] == [call["id"] for call in reply.tool_calls]


def test_calls_without_numbers_are_told_apart_by_their_names() -> None:
    reply = streamed(
        calls(piece("one", '{"a":')), calls(piece("", "1}")), calls(piece("two", "{}")), DONE
    )

    assert [("one", {"a": 1}), ("two", {})] == told(reply)
    assert 2 == len({call["id"] for call in reply.tool_calls} - {""})


def test_calls_whose_pieces_are_interleaved_stay_apart() -> None:
    reply = streamed(
        calls(piece("one", "", index=0, id="x"), piece("two", "", index=1, id="y")),
        calls(piece("", '{"b":2}', index=1)),
        calls(piece("", '{"a":1}', index=0)),
        DONE,
    )

    assert [("one", {"a": 1}), ("two", {"b": 2})] == told(reply)


def test_a_delta_and_its_call_have_the_same_id_when_the_server_gives_none() -> None:
    deltas: list[Delta] = []
    stream = ReplyStream(deltas.append, SIGNATURE)
    stream.feed(calls(piece("one", "{}", index=0)) + DONE)

    assert [stream.reply().tool_calls[0]["id"]] == [delta.tool_call_id for delta in deltas]


@pytest.mark.parametrize("given", ["functions.look:0", "x" * 41, "a b", 7])
def test_an_id_that_other_providers_refuse_is_replaced(given: Any) -> None:
    call = {"id": given, "type": "function", "function": {"name": "look", "arguments": "{}"}}

    assert whole({"tool_calls": [call]}).tool_calls[0]["id"].startswith("call_")


@pytest.mark.parametrize("arguments", ["", None, "null", "{}", {}])
def test_no_arguments_are_none_however_they_are_written(arguments: Any) -> None:
    call = {"id": "a", "function": {"name": "look", "arguments": arguments}}

    reply = whole({"content": None, "tool_calls": [call]})

    assert ([("look", {})], "tool_use") == (told(reply), reply.stop_reason)


def test_arguments_that_came_decoded_are_taken() -> None:
    call = {"id": "a", "function": {"name": "look", "arguments": {"q": 1}}}

    assert [("look", {"q": 1})] == told(whole({"tool_calls": [call]}))


@pytest.mark.parametrize("arguments", ["[1]", '"x"', "3", "{"])
def test_arguments_that_are_no_object_count_as_cut_off(arguments: str) -> None:
    reply = whole({"tool_calls": [{"id": "a", "function": {"name": "n", "arguments": arguments}}]})

    assert "max_tokens" == reply.stop_reason


def test_text_in_parts_is_joined_without_what_was_thought() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "a"},
             {"type": "text", "text": "b"}]  # fmt: skip

    assert "ab" == whole({"content": parts}).text


@pytest.mark.parametrize(
    "answer",
    [None, [], "x", 3, {}, {"choices": []}, {"choices": [{}]}, {"choices": [{"message": None}]},
     {"choices": [{"message": {"content": 3}}]}, {"choices": [{"message": {"tool_calls": [3]}}]}],
)  # fmt: skip
def test_what_is_no_completion_is_broken(answer: Any) -> None:
    with pytest.raises(BrokenReply, match="no message in"):
        read_reply(answer, SIGNATURE)


@pytest.mark.parametrize(
    "event", [b"data: x\n", b"data: 3\n", chunk({"content": {"a": 1}}), chunk([3])]
)
def test_what_is_no_chunk_is_broken(event: bytes) -> None:
    with pytest.raises(BrokenReply, match="malformed"):
        streamed(event)


def test_an_error_that_came_with_status_200_is_told_with_its_own() -> None:
    error = {"error": {"code": 429, "message": "slow down", "metadata": {"raw": "busy"}}}
    for read in (
        lambda: read_reply(error, SIGNATURE),
        lambda: streamed(b"data: " + json.dumps(error).encode() + b"\n"),
    ):
        with pytest.raises(BrokenReply, match=r"slow down \(busy\)") as caught:
            read()
        assert 429 == caught.value.status


def test_a_reply_that_ended_with_an_error_is_broken() -> None:
    with pytest.raises(BrokenReply, match="ended with an error"):
        whole({"content": "half"}, "error")


@pytest.mark.parametrize("function", [{"name": 3}, {"name": "n", "arguments": 3}, 3])
def test_a_call_that_is_none_is_broken(function: Any) -> None:
    with pytest.raises(BrokenReply, match="no message in"):
        whole({"tool_calls": [{"id": "a", "function": function}]})
    with pytest.raises(BrokenReply, match="malformed"):
        streamed(calls({"index": 0, "function": function}))


def test_usage_that_comes_with_every_chunk_is_the_last() -> None:
    reply = streamed(
        chunk({"content": "a"}, usage={"prompt_tokens": 5, "completion_tokens": 1}),
        chunk({"content": "b"}, "stop", usage={"prompt_tokens": 5, "completion_tokens": 2}),
        chunk(usage=None),
        DONE,
    )

    assert reply.usage is not None
    assert (5, 2) == (reply.usage.input_tokens, reply.usage.output_tokens)


def test_a_reply_without_usage_has_none() -> None:
    assert whole({"content": "a"}).usage is None
    assert whole({"content": "a"}, usage=None).usage is None


def test_thinking_that_is_missing_from_the_output_is_counted() -> None:
    usage = read_usage({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40})

    assert usage is not None
    assert 30 == usage.output_tokens


def test_what_openrouter_billed_is_told() -> None:
    usage = read_usage(
        {
            "prompt_tokens": 100,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
            "completion_tokens_details": None,
            "cost": 0.25,
        }
    )

    assert usage is not None
    assert (10, 60, 30, 0.25) == (
        usage.input_tokens,
        usage.cached_tokens,
        usage.cache_write_tokens,
        usage.reported_cost_usd,
    )


@pytest.mark.parametrize("usage", ["x", [1], {"prompt_tokens": "many"}, {"cost": "x"}])
def test_usage_that_is_none_is_broken(usage: Any) -> None:
    with pytest.raises(BrokenReply, match="malformed"):
        read_usage(usage)


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
AS_BLOCK = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
}


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Here.", "images": [PICTURE]},  # OpenRouter, LiteLLM
        {"content": [{"type": "text", "text": "Here."}, PICTURE]},
    ],
)
def test_pictures_of_a_reply_become_blocks(message: dict[str, Any]) -> None:
    assert [{"type": "text", "text": "Here."}, AS_BLOCK] == whole(message).content
    assert [{"type": "text", "text": "Here."}, AS_BLOCK] == streamed(chunk(message), DONE).content


def test_a_picture_behind_an_address_stays_behind_it() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    source = {"type": "url", "url": "https://example.org/a.png"}
    assert [{"type": "image", "source": source}] == whole({"images": [part]}).content
