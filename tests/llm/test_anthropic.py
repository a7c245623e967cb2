from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from flowrt.errors import ConnectorError, ModelRefused, ModelUnavailable, PromptTooLong
from flowrt.llm.anthropic import AnthropicModel
from flowrt.llm.model import Delta, Reply, Request, Usage
from flowrt.testing import FakeMessagesAPI, Gate

KEY = "sk-ant-very-secret-key-000000"


class Waits:
    """A clock on which waiting takes no time; `slept` are the waits."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def api() -> Iterator[FakeMessagesAPI]:
    with FakeMessagesAPI() as fake:
        yield fake


@pytest.fixture
def clock() -> Waits:
    return Waits()


def model(api: FakeMessagesAPI | str, **settings: Any) -> AnthropicModel:
    url = api if isinstance(api, str) else api.base_url
    return AnthropicModel(**{"api_key": KEY, "name": "claude", "base_url": url, **settings})


async def once(claude: AnthropicModel, request: Request, on_delta: Any = None) -> Reply:
    async with claude:
        return await claude.complete(request, on_delta)


def ask(text: str = "hello", **settings: Any) -> Request:
    return Request(
        messages=[{"role": "user", "content": [{"type": "text", "text": text}]}], **settings
    )


def after(content: list[dict[str, Any]], *answer: dict[str, Any]) -> Request:
    """The request that goes on from a reply with this content."""
    return Request(
        messages=[
            *ask().messages,
            {"role": "assistant", "content": content},
            {"role": "user", "content": list(answer)},
        ]
    )


def result(call: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": "found"}


TEXT = {"type": "text", "text": "go on"}

# One of each kind of block, some that nobody knows, and text that naive readers cut or change.
CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "let me\u2028see\x85", "signature": "c2lnbmVk+/="},
    {"type": "redacted_thinking", "data": "b3BhcXVl"},
    {"type": "text", "text": 'so — "naïve"\r\n\u2029 😀', "citations": [{"cited_text": "x"}]},
    {"type": "new_block", "payload": {"deep": [1, 2.5, None]}, "more": "as it is"},
    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"q": "é", "n": 2**60}},
]


async def test_a_reply_keeps_every_block_as_it_was_sent(api: FakeMessagesAPI) -> None:
    api.add({"content": CONTENT})

    reply = await once(model(api), ask())

    assert CONTENT == reply.content
    assert "tool_use" == reply.stop_reason


async def test_a_streamed_reply_is_the_same_as_one_in_one_piece(api: FakeMessagesAPI) -> None:
    api.add({"content": CONTENT}, {"content": CONTENT})
    async with model(api) as claude:
        whole = await claude.complete(ask())

        streamed = await claude.complete(ask(), on_delta=lambda delta: None)

        assert (whole.content, whole.stop_reason, whole.model) == (
            streamed.content,
            streamed.stop_reason,
            streamed.model,
        )
        assert whole.usage == streamed.usage


async def test_thinking_goes_back_byte_for_byte_and_is_accepted(api: FakeMessagesAPI) -> None:
    api.add({"content": CONTENT}, "done")
    async with model(api) as claude:
        reply = await claude.complete(ask())

        await claude.complete(after(reply.content, result("toolu_1")))

        assert CONTENT == api.bodies[1]["messages"][1]["content"]
        assert [] == api.refused


async def test_deltas_add_up_to_the_reply(api: FakeMessagesAPI) -> None:
    text = "A sentence that is longer than one piece of the stream, and then some more."
    calls = [{"name": "look", "input": {"q": "something long enough"}, "id": "toolu_9"}]
    api.add({"thinking": "hm, let me think", "text": text, "toolCalls": calls})
    deltas: list[Delta] = []

    await once(model(api), ask(), deltas.append)

    said = {
        kind: "".join(d.text for d in deltas if d.kind == kind)
        for kind in ("thinking", "text", "tool_input")
    }
    assert {
        "thinking": "hm, let me think",
        "text": text,
        "tool_input": '{"q": "something long enough"}',
    } == said
    last = deltas[-1]
    assert (2, "look", "toolu_9") == (last.index, last.tool, last.tool_call_id)


@pytest.mark.parametrize("on_delta", [None, lambda delta: None])
async def test_usage_names_what_was_read_cached_and_written(
    api: FakeMessagesAPI, on_delta: Any
) -> None:
    usage = {"inputTokens": 7, "outputTokens": 5, "cachedTokens": 11, "cacheWriteTokens": 13}
    api.add({"text": "hi", "usage": usage})

    reply = await once(model(api), ask(), on_delta)

    expected = Usage(input_tokens=7, output_tokens=5, cached_tokens=11, cache_write_tokens=13)
    assert expected == reply.usage


async def test_the_request_carries_what_was_asked_for_and_nothing_else(
    api: FakeMessagesAPI,
) -> None:
    api.add("a", "b")
    async with model(api, model="claude-haiku-4-5", max_tokens=99) as claude:
        tool = {"name": "look", "input_schema": {"type": "object"}}

        await claude.complete(ask())
        await claude.complete(
            ask(
                system=[{"type": "text", "text": "be brief"}],
                tools=[tool],
                tool_choice={"type": "auto"},
                model="claude-opus-4-6",
                max_tokens=5,
                temperature=0.2,
            )
        )

        messages = ask().messages
        assert [
            {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": messages},
            {
                "model": "claude-opus-4-6",
                "max_tokens": 5,
                "messages": messages,
                "system": [{"type": "text", "text": "be brief"}],
                "tools": [tool],
                "tool_choice": {"type": "auto"},
                "temperature": 0.2,
            },
        ] == api.bodies


async def test_thinking_is_asked_for_as_configured(api: FakeMessagesAPI) -> None:
    api.add("a", "b", "c", "d")

    await once(model(api), ask())
    await once(model(api, thinking="adaptive"), ask())
    async with model(api, thinking="budgeted", thinking_budget=2048) as budgeted:
        await budgeted.complete(ask())
        await budgeted.complete(ask(max_tokens=500))

        enabled = {"type": "enabled", "budget_tokens": 2048}
        assert [None, {"type": "adaptive"}, enabled, enabled] == [
            body.get("thinking") for body in api.bodies
        ]
        assert 2548 == api.bodies[3]["max_tokens"]


async def test_a_reply_that_may_get_long_is_streamed(api: FakeMessagesAPI) -> None:
    api.add("short", "long")
    async with model(api) as claude:
        await claude.complete(ask(max_tokens=21_333))
        await claude.complete(ask(max_tokens=64_000))

        assert [False, True] == ["stream" in body for body in api.bodies]


async def test_the_base_url_comes_from_the_environment_when_none_is_set(
    api: FakeMessagesAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", api.base_url)
    api.add("hi")

    reply = await AnthropicModel(api_key=KEY).complete(ask())

    assert "hi" == reply.text


# What fails, and what is tried again


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_a_passing_failure_is_tried_again(
    api: FakeMessagesAPI, clock: Waits, status: int
) -> None:
    api.add({"error": status}, {"error": status}, "hi")

    reply = await once(model(api, clock=clock), ask())

    assert "hi" == reply.text
    assert 3 == len(api.requests)
    assert 0.375 <= clock.slept[0] <= 0.5
    assert 0.75 <= clock.slept[1] <= 1


async def test_an_overloaded_stream_is_tried_again(api: FakeMessagesAPI, clock: Waits) -> None:
    api.add({"error": 529}, "hi")
    deltas: list[Delta] = []

    reply = await once(model(api, clock=clock), ask(), deltas.append)

    assert "hi" == reply.text
    assert "hi" == "".join(delta.text for delta in deltas)


async def test_an_overload_inside_a_stream_is_tried_again_while_nothing_was_said(
    api: FakeMessagesAPI, clock: Waits
) -> None:
    api.add({"text": "lost", "streamError": 3}, "hi")
    deltas: list[Delta] = []

    reply = await once(model(api, clock=clock), ask(), deltas.append)

    assert "hi" == reply.text
    assert "hi" == "".join(delta.text for delta in deltas)


async def test_an_overload_after_part_of_the_reply_is_not_tried_again(
    api: FakeMessagesAPI, clock: Waits
) -> None:
    api.add({"text": "half of this sentence arrives", "streamError": 4}, "never")
    deltas: list[Delta] = []

    with pytest.raises(ModelUnavailable, match="overloaded_error in the stream") as caught:
        await once(model(api, clock=clock), ask(), deltas.append)

    assert 529 == caught.value.status
    assert 1 == len(api.requests)
    assert "half of this" == "".join(delta.text for delta in deltas)


async def test_nobody_listening_a_stream_that_breaks_late_is_tried_again(
    api: FakeMessagesAPI, clock: Waits
) -> None:
    api.add({"text": "half of this sentence arrives", "disconnect": 5}, "hi")

    reply = await once(model(api, clock=clock, max_tokens=64_000), ask())

    assert "hi" == reply.text


@pytest.mark.parametrize("on_delta", [None, lambda delta: None])
async def test_a_connection_that_breaks_is_tried_again(
    api: FakeMessagesAPI, clock: Waits, on_delta: Any
) -> None:
    api.add({"text": "lost", "disconnect": 0}, "hi")

    reply = await once(model(api, clock=clock), ask(), on_delta)

    assert "hi" == reply.text


async def test_retries_of_all_kinds_share_one_bound(api: FakeMessagesAPI, clock: Waits) -> None:
    api.add(
        {"error": 529},
        {"text": "lost", "streamError": 1},
        {"text": "lost", "disconnect": 1},
        "never",
    )

    with pytest.raises(ModelUnavailable, match="3 attempts"):
        await once(model(api, clock=clock, max_retries=2), ask(), lambda delta: None)

    assert 3 == len(api.requests)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:09 GMT"}, 9),
    ],
)
async def test_a_wait_that_the_provider_asks_for_is_kept(
    api: FakeMessagesAPI, clock: Waits, headers: dict[str, str], expected: float
) -> None:
    api.add({"error": 429, "headers": headers}, "hi")

    await once(model(api, clock=clock), ask())

    assert [expected] == clock.slept


async def test_a_wait_longer_than_the_timeout_is_not_begun(
    api: FakeMessagesAPI, clock: Waits
) -> None:
    api.add({"error": 429, "headers": {"retry-after": "3600"}}, "never")

    with pytest.raises(ModelUnavailable, match="3600 s away") as caught:
        await once(model(api, clock=clock), ask())

    assert 429 == caught.value.status
    assert [] == clock.slept


async def test_each_retry_leaves_a_line_in_the_log(
    api: FakeMessagesAPI, clock: Waits, capsys: pytest.CaptureFixture[str]
) -> None:
    api.add({"error": 503}, {"error": 429}, "hi")

    await once(model(api, clock=clock), ask())

    assert 2 == len(capsys.readouterr().err.splitlines())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_a_refusal_is_never_sent_again(
    api: FakeMessagesAPI, clock: Waits, status: int
) -> None:
    api.add({"error": status, "message": "no, because"}, "never")

    with pytest.raises(ModelRefused, match="no, because") as caught:
        await once(model(api, clock=clock), ask())

    assert status == caught.value.status
    assert not isinstance(caught.value, PromptTooLong)
    assert 1 == len(api.requests)


async def test_a_provider_that_says_not_to_retry_is_obeyed(
    api: FakeMessagesAPI, clock: Waits
) -> None:
    api.add({"error": 529, "headers": {"x-should-retry": "false"}}, "never")

    with pytest.raises(ModelUnavailable):
        await once(model(api, clock=clock), ask())

    assert 1 == len(api.requests)


@pytest.mark.parametrize("on_delta", [None, lambda delta: None])
async def test_a_prompt_over_the_window_is_told_apart(on_delta: Any) -> None:
    with FakeMessagesAPI(window=100) as api:
        with pytest.raises(PromptTooLong, match=r"prompt is too long: \d+ tokens > 100 maximum"):
            await once(model(api), ask("word " * 200), on_delta)

        assert 1 == len(api.requests)


@pytest.mark.parametrize("on_delta", [None, lambda delta: None])
async def test_a_provider_that_is_not_there_is_named_with_method_and_url(
    clock: Waits, on_delta: Any
) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        await once(model("http://127.0.0.1:9", clock=clock), ask(), on_delta)

    text = str(caught.value)
    assert 'llm-anthropic stream: Post "http://127.0.0.1:9/v1/messages"' in text
    assert "'claude'" in text
    assert caught.value.status is None


@asynccontextmanager
async def serve(answer: bytes) -> AsyncIterator[str]:
    """The address of a server that is no Messages API and answers every request with this."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


PAGE = b"<html>Sorry</html>"
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n" % len(PAGE)
BAD = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: %d\r\n\r\n" % len(PAGE)


@pytest.mark.parametrize("on_delta", [None, lambda delta: None])
@pytest.mark.parametrize("answer", [OK + PAGE, BAD + PAGE, b"nonsense\r\n\r\n", b""])
async def test_an_answer_that_is_no_message_is_the_providers_fault(
    clock: Waits, answer: bytes, on_delta: Any
) -> None:
    async with serve(answer) as url:
        with pytest.raises(ModelUnavailable, match=f'Post "{url}/v1/messages".* 2 attempts'):
            await once(model(url, clock=clock, max_retries=1), ask(), on_delta)


@pytest.mark.parametrize("on_delta", [None, lambda delta: None])
async def test_a_provider_that_says_nothing_is_given_up(
    api: FakeMessagesAPI, on_delta: Any
) -> None:
    api.add({"text": "never", "hold": Gate()})

    with pytest.raises(ModelUnavailable, match="ReadTimeout"):
        await once(model(api, timeout=0.05), ask(), on_delta)

    assert 1 == len(api.requests)


async def test_the_key_is_in_no_error_text(clock: Waits) -> None:
    with FakeMessagesAPI(api_key="another") as api:
        api.add({"error": 500, "message": f"cannot log in with {KEY}"})
        texts = []
        for target, retries in ((api.base_url, 0), (f"http://u:{KEY}@127.0.0.1:9", 0)):
            async with model(target, clock=clock, max_retries=retries) as claude:
                with pytest.raises((ModelRefused, ModelUnavailable)) as caught:
                    await claude.complete(ask())
                texts.append(str(caught.value))

    assert "check the connector's apiKey" in texts[0]
    assert [] == [text for text in texts if KEY in text]


async def test_an_answer_that_quotes_the_key_is_masked(api: FakeMessagesAPI) -> None:
    api.add({"error": 400, "message": f"the key {KEY} is odd"})

    with pytest.raises(ModelRefused, match=r"the key \[redacted\] is odd"):
        await once(model(api), ask())


def test_a_key_that_no_header_can_carry_is_refused_without_showing_it() -> None:
    for bad in (f"{KEY}\nX-Evil: 1", f"{KEY}é"):
        with pytest.raises(ConnectorError, match="copy the key again") as caught:
            AnthropicModel(api_key=bad)
        assert KEY not in str(caught.value)


async def test_a_key_with_a_newline_at_its_end_works() -> None:
    with FakeMessagesAPI(["hi"], api_key=KEY) as api:
        assert "hi" == (await once(model(api, api_key=f"{KEY}\n"), ask())).text


# Replies that are cut off, foreign or odd


async def test_arguments_that_were_cut_off_are_never_acted_upon(api: FakeMessagesAPI) -> None:
    cut = {"type": "tool_use", "id": "toolu_1", "name": "send", "input": '{"to": "all'}
    api.add({"content": [cut], "stopReason": "tool_use"})

    reply = await once(model(api), ask(), lambda delta: None)

    assert "max_tokens" == reply.stop_reason
    assert {"INVALID_JSON": '{"to": "all'} == reply.tool_calls[0]["input"]


async def test_a_reply_without_content_is_a_reply(api: FakeMessagesAPI) -> None:
    api.add({"content": []}, {"content": []})
    async with model(api) as claude:
        assert [] == (await claude.complete(ask())).content
        assert [] == (await claude.complete(ask(), lambda delta: None)).content


async def test_blank_text_in_a_reply_is_kept_as_it_came(api: FakeMessagesAPI) -> None:
    content = [
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
    ]
    api.add({"content": content}, {"content": content})
    async with model(api) as claude:
        assert content == (await claude.complete(ask())).content
        assert content == (await claude.complete(ask(), lambda delta: None)).content


async def test_text_that_cannot_be_stored_is_cleaned_where_it_enters(api: FakeMessagesAPI) -> None:
    api.add("a\x00b", "a\x00b")
    async with model(api) as claude:
        assert "a\ufffdb" == (await claude.complete(ask())).text
        assert "a\ufffdb" == (await claude.complete(ask(), lambda delta: None)).text


async def test_thinking_of_another_model_is_left_out_and_not_tried_again(
    api: FakeMessagesAPI,
) -> None:
    api.add({"thinking": "hm", "text": "I see"}, "second", "third")
    first = model(api, thinking="adaptive")
    async with model(api, model="claude-opus-4-6", thinking="adaptive") as other:
        reply = await first.complete(ask())

        assert "second" == (await other.complete(after(reply.content, TEXT))).text
        assert "third" == (await other.complete(after(reply.content, TEXT))).text

        assert 1 == len(api.refused)
        assert [{"type": "text", "text": "I see"}] == api.bodies[3]["messages"][1]["content"]
        assert {"type": "adaptive"} == api.bodies[3]["thinking"]


async def test_a_round_that_lost_its_thinking_goes_on_without_any(api: FakeMessagesAPI) -> None:
    api.add({"thinking": "hm", "toolCalls": [{"name": "look", "id": "toolu_1"}]}, "done")
    reply = await once(model(api, thinking="adaptive"), ask())

    async with model(api, model="claude-opus-4-6", thinking="adaptive") as other:
        await other.complete(after(reply.content, result("toolu_1")))

        assert "thinking" not in api.bodies[-1]


# Life


@pytest.mark.parametrize("on_delta", [None, lambda delta: None])
async def test_a_cancelled_call_hangs_up_and_leaves_the_model_usable(
    api: FakeMessagesAPI, on_delta: Any
) -> None:
    gate = Gate()
    api.add({"text": "late", "hold": gate}, "hi")
    async with model(api) as claude:
        call = asyncio.ensure_future(claude.complete(ask(), on_delta))
        await gate.reached()

        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        await api.requests[0].abandoned()
        assert "hi" == (await claude.complete(ask(), on_delta)).text


async def test_a_stream_cancelled_in_the_middle_hangs_up(api: FakeMessagesAPI) -> None:
    gate = Gate()
    api.add({"text": "one two three four five", "hold": gate, "holdAfter": 4}, "hi")
    async with model(api) as claude:
        call = asyncio.ensure_future(claude.complete(ask(), lambda delta: None))
        await gate.reached()

        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        await api.requests[0].abandoned()
        assert "hi" == (await claude.complete(ask())).text


async def test_a_listener_that_fails_ends_the_call_with_its_own_error(
    api: FakeMessagesAPI,
) -> None:
    api.add("hello")

    def fail(delta: Delta) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await once(model(api), ask(), fail)

    assert 1 == len(api.requests)


def test_a_model_works_in_two_event_loops_one_after_the_other(api: FakeMessagesAPI) -> None:
    api.add("one", "two")
    claude = model(api)

    async def once() -> str:
        await claude.start()
        try:
            return (await claude.complete(ask())).text
        finally:
            await claude.close()

    assert ["one", "two"] == [asyncio.run(once()), asyncio.run(once())]


async def test_many_calls_at_once_each_get_their_own_answer() -> None:
    with FakeMessagesAPI(reply=lambda body: body["messages"][0]["content"][0]["text"]) as api:
        async with model(api) as claude:
            replies = await asyncio.gather(*(claude.complete(ask(f"n{i}")) for i in range(40)))

    assert [f"n{i}" for i in range(40)] == [reply.text for reply in replies]


async def test_a_stream_leaves_its_connection_for_the_next_call(api: FakeMessagesAPI) -> None:
    api.add("one", "two", "three")
    async with model(api) as claude:
        for _ in range(3):
            await claude.complete(ask(), lambda delta: None)

        ports = {call.port for call in api.requests}
        assert 1 == len(ports)


async def test_closing_ends_the_calls_under_way(api: FakeMessagesAPI, clock: Waits) -> None:
    gate = Gate()
    api.add({"text": "never", "hold": gate})
    claude = model(api, clock=clock)
    call = asyncio.ensure_future(claude.complete(ask()))
    await gate.reached()

    await claude.close()

    with pytest.raises(ModelUnavailable):
        await call
