"""What fails between flowrt and a Chat Completions server, and what is tried again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from flowrt.errors import ConnectorError, ModelRefused, ModelUnavailable, PromptTooLong
from flowrt.llm.model import Delta
from flowrt.llm.openai_errors import NO_EFFORT_WITH_TOOLS
from flowrt.testing import FakeCompletionsAPI, Gate
from tests.llm.anthropic_calls import Waits, ask
from tests.llm.openai_calls import KEY, LOOK, client, model, once

LISTENERS = [None, lambda delta: None]


@pytest.mark.parametrize("on_delta", LISTENERS)
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_a_passing_failure_is_tried_again(
    chat: FakeCompletionsAPI, clock: Waits, status: int, on_delta: Any
) -> None:
    chat.add({"error": status, "headers": {"retry-after": "7"}}, {"error": status}, "hi")

    reply = await once(model(chat, clock), ask(), on_delta)

    assert "hi" == reply.text
    assert 7 == clock.slept[0]
    assert 0.75 <= clock.slept[1] <= 1


async def test_an_error_inside_a_stream_is_tried_again_while_nothing_was_said(
    chat: FakeCompletionsAPI, clock: Waits
) -> None:
    chat.add({"text": "lost", "streamError": 1}, {"text": "lost", "disconnect": 1}, "hi")
    deltas: list[Delta] = []

    reply = await once(model(chat, clock), ask(), deltas.append)

    assert "hi" == reply.text
    assert "hi" == "".join(delta.text for delta in deltas)


@pytest.mark.parametrize("broken", [{"streamError": 2}, {"disconnect": 2}])
async def test_an_error_after_part_of_the_reply_is_not_tried_again(
    chat: FakeCompletionsAPI, clock: Waits, broken: dict[str, int]
) -> None:
    chat.add({"text": "half of this sentence arrives", **broken}, "never")
    deltas: list[Delta] = []

    with pytest.raises(ModelUnavailable):
        await once(model(chat, clock), ask(), deltas.append)

    assert 1 == len(chat.requests)
    assert "half of this" == "".join(delta.text for delta in deltas)


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_a_connection_that_breaks_is_tried_again(
    chat: FakeCompletionsAPI, clock: Waits, on_delta: Any
) -> None:
    chat.add({"text": "lost", "disconnect": 0}, "hi")

    assert "hi" == (await once(model(chat, clock), ask(), on_delta)).text


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
async def test_a_refusal_is_never_sent_again(
    chat: FakeCompletionsAPI, clock: Waits, status: int
) -> None:
    chat.add({"error": status, "message": "no, because"}, "never")

    with pytest.raises(ModelRefused, match="no, because") as caught:
        await once(model(chat, clock), ask())

    assert status == caught.value.status
    assert not isinstance(caught.value, PromptTooLong)
    assert 1 == len(chat.requests)


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_a_prompt_over_the_window_is_told_apart(on_delta: Any) -> None:
    with FakeCompletionsAPI(window=100) as api:
        with pytest.raises(PromptTooLong, match="maximum context length is 100 tokens"):
            await once(model(api), ask("word " * 200), on_delta)

        assert 1 == len(api.requests)


@asynccontextmanager
async def serve(status: str, page: bytes, kind: str = "application/json") -> AsyncIterator[str]:
    """The address of a server that answers every request with this."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(page)}\r\n\r\n"

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head.encode() + page)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@pytest.mark.parametrize(
    "page",
    [
        b'{"error": {"code": 400, "type": "exceed_context_size_error", "message":'
        b' "the request exceeds the available context size (4096 tokens)"}}',
        b'{"object": "error", "code": 400, "type": "BadRequestError", "message":'
        b' "The decoder prompt (length 9) is longer than the maximum model length of 8."}',
        b'[{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count'
        b' (9) exceeds the maximum number of tokens allowed (8)."}}]',
        b'{"error": {"code": 400, "message": "Provider returned error", "metadata":'
        b' {"raw": "prompt is too long: 9 tokens > 8 maximum"}}}',
    ],
    ids=["llama.cpp", "vLLM", "Gemini", "OpenRouter"],
)
async def test_a_prompt_that_is_too_long_is_told_apart_in_every_servers_words(page: bytes) -> None:
    async with serve("400 Bad Request", page) as url:
        with pytest.raises(PromptTooLong):
            await once(model(url), ask())


QUOTA = (
    b'{"error": {"message": "You exceeded your current quota.", "type": "insufficient_quota",'
    b' "param": null, "code": "insufficient_quota"}}'
)


async def test_an_account_without_credit_is_not_asked_again(clock: Waits) -> None:
    async with serve("429 Too Many Requests", QUOTA) as url:
        with pytest.raises(ModelRefused, match="check its plan and billing") as caught:
            await once(model(url, clock), ask())

    assert 429 == caught.value.status
    assert [] == clock.slept


PAGES = [
    ("200 OK", b"<html>Sorry</html>", "text/html"),
    ("502 Bad Gateway", b"<html>Sorry</html>", "text/html"),
    ("200 OK", b"[]", "application/json"),
    ("200 OK", b'{"error": {"code": 502, "message": "upstream"}}', "application/json"),
]


@pytest.mark.parametrize("on_delta", LISTENERS)
@pytest.mark.parametrize("answer", PAGES)
async def test_an_answer_that_is_no_completion_is_the_servers_fault(
    clock: Waits, answer: tuple[str, bytes, str], on_delta: Any
) -> None:
    async with serve(*answer) as url:
        with pytest.raises(ModelUnavailable, match=f'Post "{url}/chat/completions".* 2 attempts'):
            await once(model(url, clock, max_retries=1), ask(), on_delta)


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_a_server_that_is_not_there_is_named_with_method_and_url(
    clock: Waits, on_delta: Any
) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        await once(model("http://127.0.0.1:9/v1", clock), ask(), on_delta)

    expected = "connector 'gpt': llm-openai stream: Post \"http://127.0.0.1:9/v1/chat/completions\""
    assert str(caught.value).startswith(expected)
    assert caught.value.status is None


@pytest.mark.parametrize("on_delta", LISTENERS)
async def test_a_server_that_says_nothing_is_given_up(
    chat: FakeCompletionsAPI, on_delta: Any
) -> None:
    chat.add({"text": "never", "hold": Gate()})

    with pytest.raises(ModelUnavailable, match="ReadTimeout"):
        await once(model(chat, timeout=0.05), ask(), on_delta)

    assert 1 == len(chat.requests)


async def test_the_key_is_in_no_error_text(clock: Waits) -> None:
    with FakeCompletionsAPI(api_key="another") as api:
        texts = []
        for target in (api.base_url, f"http://u:{KEY}@127.0.0.1:9"):
            with pytest.raises((ModelRefused, ModelUnavailable)) as caught:
                await once(model(target, clock, max_retries=0), ask())
            texts.append(str(caught.value))

    assert "check the connector's apiKey" in texts[0]
    assert [] == [text for text in texts if KEY in text]


async def test_an_answer_that_quotes_the_key_is_masked(chat: FakeCompletionsAPI) -> None:
    chat.add({"error": 400, "message": f"the key {KEY} is odd"})

    with pytest.raises(ModelRefused, match=r"the key \[redacted\] is odd"):
        await once(model(chat), ask())


def test_a_key_that_no_header_can_carry_is_refused_without_showing_it() -> None:
    for bad in (f"{KEY}\nX-Evil: 1", f"{KEY}é"):
        with pytest.raises(ConnectorError, match="copy the key again") as caught:
            client("http://127.0.0.1:9", api_key=bad)
        assert KEY not in str(caught.value)


async def test_a_key_with_a_newline_at_its_end_works() -> None:
    with FakeCompletionsAPI(["hi"], api_key=KEY) as api:
        assert "hi" == (await once(model(api, api_key=f"{KEY}\n"), ask())).text


async def test_a_missing_sdk_is_told_with_the_way_out(
    chat: FakeCompletionsAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)

    with pytest.raises(ConnectorError, match=r"pip install 'flowrt\[openai\]'"):
        await once(model(chat), ask())


# What a server wants otherwise, and says so

NO_TOOLS = {
    "error": 400,
    "message": f"{NO_EFFORT_WITH_TOOLS} for gpt-5.6 in /v1/chat/completions. To use function "
    "tools, use /v1/responses or set reasoning_effort to 'none'.",
}


async def test_a_model_that_takes_no_tools_while_it_reasons_is_asked_without(
    chat: FakeCompletionsAPI,
) -> None:
    chat.add(NO_TOOLS, "one", "two", "three")
    async with model(chat) as gpt:
        assert "one" == (await gpt.complete(ask(tools=[LOOK]))).text
        assert "two" == (await gpt.complete(ask(tools=[LOOK]))).text
        assert "three" == (await gpt.complete(ask())).text

    efforts = [body.get("reasoning_effort") for body in chat.bodies]
    assert [None, "none", "none", None] == efforts


async def test_reasoning_that_the_file_asks_for_is_not_turned_off(chat: FakeCompletionsAPI) -> None:
    chat.add(NO_TOOLS)

    with pytest.raises(ModelRefused, match="set the connector's reasoning: none"):
        await once(model(chat, settings={"extra": {"reasoning_effort": "low"}}), ask(tools=[LOOK]))

    assert 1 == len(chat.requests)


async def test_a_server_that_wants_the_length_under_its_new_name_gets_it(
    chat: FakeCompletionsAPI,
) -> None:
    text = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead."
    )
    chat.add(
        {"error": 400, "message": text}, NO_TOOLS, "one", "two", {"error": 400, "message": text}
    )
    async with model(chat, settings={"max_tokens": 9}) as gpt:
        assert "one" == (await gpt.complete(ask(tools=[LOOK]))).text
        assert "two" == (await gpt.complete(ask())).text
        with pytest.raises(ModelRefused, match="Unsupported parameter"):
            await gpt.complete(ask())

    assert [9, None, None, None, None] == [body.get("max_tokens") for body in chat.bodies]
    assert 9 == chat.bodies[3]["max_completion_tokens"]


def test_the_key_is_not_in_the_text_of_what_holds_it() -> None:
    assert KEY not in repr(client("http://127.0.0.1:9").access)
