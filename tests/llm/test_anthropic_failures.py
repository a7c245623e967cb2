"""What fails between flowrt and the Messages API, and what is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from flowrt.errors import ConnectorError, ModelRefused, ModelUnavailable, PromptTooLong
from flowrt.llm.anthropic import AnthropicModel
from flowrt.llm.model import Delta
from flowrt.testing import FakeMessagesAPI, Gate
from tests.llm.anthropic_calls import KEY, Waits, ask, model, once


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
        await once(model(api, timeout=0.5), ask(), on_delta)

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
