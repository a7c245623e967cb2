"""What the fake Chat Completions and Embeddings APIs answer, and how they hold, break and fail."""

from __future__ import annotations

import base64
import http.client
import math
import threading
from array import array
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from flowrt.testing import FakeCompletionsAPI, FakeReply, Gate
from tests.testing.completions import body, calling, chunks, post, result, tool, user


@pytest.fixture
def api() -> Iterator[FakeCompletionsAPI]:
    with FakeCompletionsAPI() as fake:
        yield fake


def said(answer: Any) -> str:
    text: str = answer["choices"][0]["message"]["content"]
    return text


def test_replies_are_played_in_order_and_then_the_function_is_asked() -> None:
    replies = ["one", {"text": "two"}, FakeReply(text="three")]
    with FakeCompletionsAPI(replies, reply=lambda sent: sent["model"]) as api:
        texts = [said(post(api, body())[1]) for _ in range(4)]

    assert ["one", "two", "three", "m"] == texts


def test_conditions_see_the_request_as_those_of_the_messages_api_do() -> None:
    replies = [
        {"when": 'request.system.contains("brief") && request.text.contains("found")', "text": "a"},
        {"when": 'request.lastUserText == "ping"', "text": "b"},
        "c",
    ]
    round_trip = [{"role": "system", "content": "be brief"}, user("x"), calling("1"), result("1")]
    with FakeCompletionsAPI(replies) as api:
        texts = [
            said(post(api, body(*messages))[1])
            for messages in (round_trip, [user("ping")], [user([{"type": "text", "text": "x"}])])
        ]

    assert ["a", "b", "c"] == texts


def test_a_request_that_the_script_does_not_know_is_refused_and_says_so(
    api: FakeCompletionsAPI,
) -> None:
    status, answer, _ = post(api, body())

    assert 400 == status
    assert "no reply for request 1" in answer["error"]["message"]
    assert [answer["error"]["message"]] == api.refused


def test_a_completion_has_the_shape_of_the_real_one(api: FakeCompletionsAPI) -> None:
    api.add({"toolCalls": [{"name": "look", "input": {"q": 1}, "id": "call_1"}]})

    _, answer, headers = post(api, body(tools=[tool()]))

    choice = answer["choices"][0]
    function = {"name": "look", "arguments": '{"q": 1}'}
    assert {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    } == choice["message"]
    assert ("tool_calls", "chat.completion") == (choice["finish_reason"], answer["object"])
    usage = answer["usage"]
    assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"]
    assert headers["x-request-id"].startswith("req_")


def test_a_stream_adds_up_and_tells_usage_only_where_it_is_asked_to(
    api: FakeCompletionsAPI,
) -> None:
    text = "a text that is longer than one piece"
    api.add({"text": text, "toolCalls": [{"name": "look", "input": {"q": "something"}}]}, "silent")

    _, told, headers = post(api, body(stream=True, stream_options={"include_usage": True}))
    _, silent, _ = post(api, body(stream=True))

    assert "text/event-stream" == headers["content-type"]
    *parts, last = chunks(told)
    deltas = [part["choices"][0]["delta"] for part in parts]
    assert text == "".join(delta.get("content") or "" for delta in deltas)
    pieces = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert '{"q": "something"}' == "".join(piece["function"]["arguments"] for piece in pieces)
    assert "tool_calls" == parts[-1]["choices"][0]["finish_reason"]
    assert [] == last["choices"]
    assert last["usage"]["prompt_tokens"] > 0
    assert all("usage" not in chunk for chunk in chunks(silent))


async def test_the_official_sdk_is_served(api: FakeCompletionsAPI) -> None:
    api.add("one", "two")
    async with openai.AsyncOpenAI(api_key="k", base_url=api.base_url) as sdk:
        messages: Any = [user("hi")]
        whole = await sdk.chat.completions.create(model="m", messages=messages)
        stream = await sdk.chat.completions.create(model="m", messages=messages, stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
        vectors = await sdk.embeddings.create(model="e", input=["a", "b"])

    assert ("one", "two") == (whole.choices[0].message.content, "".join(pieces))
    assert [1536, 1536] == [len(item.embedding) for item in vectors.data]


def test_a_failure_has_the_shape_of_the_real_one(api: FakeCompletionsAPI) -> None:
    api.add({"error": 429, "message": "slow down", "headers": {"retry-after": "3"}})

    status, answer, headers = post(api, body())

    error = {"message": "slow down", "type": "rate_limit_error", "param": None, "code": None}
    assert (429, {"error": error}, "3") == (status, answer, headers["retry-after"])
    assert [] == api.refused


def test_a_stream_can_end_in_an_error(api: FakeCompletionsAPI) -> None:
    api.add({"text": "a text that is lost", "streamError": 2, "message": "gone"})

    _, text, _ = post(api, body(stream=True))

    assert "a text that" in text
    assert '"message": "gone"' in text
    assert "[DONE]" not in text


def test_a_connection_can_break(api: FakeCompletionsAPI) -> None:
    api.add({"text": "a text that is lost", "disconnect": 1})

    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        post(api, body(stream=True))


def test_an_answer_can_be_held_until_the_test_has_looked(api: FakeCompletionsAPI) -> None:
    gate = Gate()
    api.add({"text": "late", "hold": gate})
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(post(api, body())))
    thread.start()
    gate.wait()

    assert [] == answers
    gate.open()
    thread.join()

    assert "late" == said(answers[0][1])


def test_a_prompt_that_goes_on_is_read_from_the_cache(api: FakeCompletionsAPI) -> None:
    api.reply = lambda _: "fine"
    first, second = user("a question " * 20), user("another")
    answered = {"role": "assistant", "content": "fine"}

    usages = [
        post(api, body(*messages, **more))[1]["usage"]
        for messages, more in (
            ([first], {}),
            ([first, answered, second], {}),
            ([second], {}),
            ([first], {"model": "other"}),
        )
    ]

    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages]
    assert 0 == cached[0] == cached[2] == cached[3]
    assert 0 < cached[1] < usages[1]["prompt_tokens"]


def test_a_picture_counts_the_same_whatever_its_size(api: FakeCompletionsAPI) -> None:
    api.reply = lambda _: "fine"
    counted = []
    for size in (1, 100_000):
        url = f"data:image/png;base64,{'A' * size}"
        part = {"type": "image_url", "image_url": {"url": url}}
        counted.append(post(api, body(user([part])))[1]["usage"]["prompt_tokens"])

    assert counted[0] == counted[1] > 1500


# Embeddings


def embed(api: FakeCompletionsAPI, **sent: Any) -> Any:
    status, answer, _ = post(api, {"model": "e", **sent}, path="/embeddings")
    assert 200 == status, answer
    return answer


def test_vectors_are_the_same_each_time_and_have_length_1(api: FakeCompletionsAPI) -> None:
    first, second = (embed(api, input="the cat sat")["data"][0]["embedding"] for _ in range(2))

    assert first == second
    assert 1536 == len(first)
    assert math.isclose(1, sum(number * number for number in first), abs_tol=1e-5)


def test_texts_that_share_words_are_near_and_models_are_apart(api: FakeCompletionsAPI) -> None:
    texts = ["where is my order", "my order is late", "blue whales"]
    order, late, whales = (item["embedding"] for item in embed(api, input=texts)["data"])
    other = embed(api, input=texts[0], model="other")["data"][0]["embedding"]

    def near(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert near(order, late) > 0.5
    assert abs(near(order, whales)) < 0.3
    assert abs(near(order, other)) < 0.3


def test_vectors_come_packed_and_in_the_size_that_was_asked_for(api: FakeCompletionsAPI) -> None:
    plain = embed(api, input=["a"], dimensions=8)["data"][0]["embedding"]
    packed = embed(api, input=["a"], dimensions=8, encoding_format="base64")["data"][0]["embedding"]

    numbers = array("f")
    numbers.frombytes(base64.b64decode(packed))
    assert plain == numbers.tolist()
    assert 8 == len(plain)


@pytest.mark.parametrize("text", ["", " ", "…", "\u200b"])
def test_a_text_without_words_has_a_vector_unless_it_is_empty(
    api: FakeCompletionsAPI, text: str
) -> None:
    status, answer, _ = post(api, {"model": "e", "input": [text]}, path="/embeddings")

    assert (200 if text else 400) == status, answer


def test_requests_for_embeddings_can_be_made_to_fail(api: FakeCompletionsAPI) -> None:
    api.add_embeddings({"error": 503})

    statuses = [post(api, {"model": "e", "input": "a"}, path="/embeddings")[0] for _ in range(2)]

    assert [503, 200] == statuses
    assert [503, 200] == [call.status for call in api.embeddings]
    assert [] == api.requests
