"""Anthropic's Messages API as a `ChatModel`, over the official SDK.

The SDK does connections, authentication and headers. Its typed objects are passed by: requests go
out as the blocks they are and replies are read as JSON, so that blocks which neither the SDK nor
flowrt knows survive byte for byte (FB-17), and nothing is converted twice. Its retries are off:
`flowrt.llm.retry` says why.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from flowrt.clock import Clock, SystemClock
from flowrt.errors import ConnectorError, ModelRefused, RequestInvalid, describe
from flowrt.llm.anthropic_errors import Failures
from flowrt.llm.anthropic_reply import ReplyStream, read_reply
from flowrt.llm.anthropic_thinking import ForeignThinking, lacks_thinking
from flowrt.llm.failures import BrokenReply
from flowrt.llm.model import Delta, Reply, Request
from flowrt.llm.retry import Transient, with_retries
from flowrt.observe.log import get_logger

if TYPE_CHECKING:
    import anthropic
    import httpx2

API = "https://api.anthropic.com"
PATH = "/v1/messages"

# A reply this long may take more than ten minutes, and connections that are silent for so long are
# cut by what lies between; the SDK draws the line for calls that do not stream at the same place.
_STREAM_ABOVE = 21_333

_CONNECT_TIMEOUT = 5.0

# The API refuses a request that both forces a call and lets the model think before it.
_FORCED = ("any", "tool")

_log = get_logger("flowrt.llm")

Thinking = Literal["off", "adaptive", "budgeted"]


class AnthropicModel:
    """A model of Anthropic, or of whatever speaks the Messages API at `base_url`.

    `timeout` is the longest silence in seconds, and the longest time that retries may begin in.
    `max_retries` is how often a call is sent again after 408, 409, 429, 5xx, an overload inside a
    stream, or a broken connection. Without `base_url`, `ANTHROPIC_BASE_URL` counts. The SDK takes
    more than a second to import, so that happens at `start` or at the first call, in a thread.
    After `close` the model can be started again, also in another event loop.

    Raises `ConnectorError` for an `api_key` that no HTTP header can hold.
    """

    provider = "ANTHROPIC"

    def __init__(
        self,
        *,
        api_key: str,
        name: str = "llm-anthropic",
        model: str = "claude-sonnet-4-6",
        max_tokens: int = 4096,
        base_url: str | None = None,
        thinking: Thinking = "off",
        thinking_budget: int | None = None,
        timeout: float = 600.0,
        max_retries: int = 2,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        # A key read from a file ends in a newline more often than not.
        self._api_key = api_key.strip()
        if not (self._api_key.isascii() and self._api_key.isprintable()):
            raise ConnectorError(
                f"connector {name!r}: apiKey holds characters that no HTTP header can carry; "
                "copy the key again"
            )
        self._model = model
        self._max_tokens = max_tokens
        self._base_url = base_url or os.environ.get("ANTHROPIC_BASE_URL") or API
        self._thinking = thinking
        self._thinking_budget = thinking_budget or 0
        self._timeout = timeout
        self._max_retries = max_retries
        self._clock = clock or SystemClock()
        self._client: anthropic.AsyncAnthropic | None = None
        self._opening = threading.Lock()
        self._foreign = ForeignThinking()
        url = self._base_url.rstrip("/") + PATH
        self._failures = Failures(name, url, self._api_key)

    async def start(self) -> None:
        """Import the SDK and make the client; without it, the first call does. May be repeated."""
        await self._open()

    async def close(self) -> None:
        """Close the connections. Calls under way fail."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def complete(
        self, request: Request, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply:
        """Ask the model; see `ChatModel`. Cancelling it ends the HTTP exchange at once.

        Replies longer than the API sends in one piece are streamed also without `on_delta`.
        """
        client = self._client or await self._open()
        messages = self._foreign.without(request.messages)
        try:
            return await self._ask(client, self._body(request, messages), on_delta)
        except ModelRefused as refused:
            if not self._foreign.learn(refused, messages):
                raise
        _log.warning("the model refused another model's thinking; it is left out from now on",
                     connector=self.name)  # fmt: skip
        messages = self._foreign.without(messages)
        return await self._ask(client, self._body(request, messages), on_delta)

    async def _ask(
        self,
        client: anthropic.AsyncAnthropic,
        body: dict[str, Any],
        on_delta: Callable[[Delta], None] | None,
    ) -> Reply:
        async def attempt() -> Reply:
            if on_delta is None and body["max_tokens"] <= _STREAM_ABOVE:
                return await self._whole(client, body)
            return await self._streamed(client, {**body, "stream": True}, on_delta)

        return await with_retries(
            attempt,
            retries=self._max_retries,
            patience=self._timeout,
            clock=self._clock,
            name=self.name,
        )

    async def _open(self) -> anthropic.AsyncAnthropic:
        return await asyncio.to_thread(self._make_client)

    def _make_client(self) -> anthropic.AsyncAnthropic:
        import anthropic

        with self._opening:
            if self._client is None:
                self._client = anthropic.AsyncAnthropic(
                    api_key=self._api_key,
                    base_url=self._base_url,
                    max_retries=0,
                    timeout=anthropic.Timeout(
                        self._timeout, connect=min(self._timeout, _CONNECT_TIMEOUT)
                    ),
                )
            return self._client

    def _body(self, request: Request, messages: list[dict[str, Any]]) -> dict[str, Any]:
        thinks = messages is request.messages or not lacks_thinking(messages)
        body = {**self._parameters(request, thinks), "messages": messages}
        if request.system:
            body["system"] = request.system
        if request.tools:
            body["tools"] = request.tools
            if request.tool_choice is not None:
                body["tool_choice"] = request.tool_choice
        return body

    def parameters(self, request: Request) -> dict[str, Any]:
        """What goes out beside messages, system prompt and tools."""
        return self._parameters(request, thinks=True)

    def _parameters(self, request: Request, thinks: bool) -> dict[str, Any]:
        max_tokens = request.max_tokens or self._max_tokens
        told: dict[str, Any] = {"model": request.model or self._model, "max_tokens": max_tokens}
        if request.temperature is not None:
            told["temperature"] = request.temperature
        if not thinks or (request.tool_choice or {}).get("type") in _FORCED:
            return told
        if self._thinking == "adaptive":
            told["thinking"] = {"type": "adaptive"}
        elif self._thinking == "budgeted":
            # The budget is part of max_tokens: a request that sets its own for a short reply would
            # have no room left for it, and the API refuses that.
            if max_tokens <= self._thinking_budget:
                told["max_tokens"] += self._thinking_budget
            told["thinking"] = {"type": "enabled", "budget_tokens": self._thinking_budget}
        return told

    async def _whole(self, client: anthropic.AsyncAnthropic, body: dict[str, Any]) -> Reply:
        async with self._sent(client, body) as response:
            try:
                return read_reply(json.loads(response.content))
            except (ValueError, BrokenReply) as error:
                raise self._failures.of_reply(error) from error

    async def _streamed(
        self,
        client: anthropic.AsyncAnthropic,
        body: dict[str, Any],
        on_delta: Callable[[Delta], None] | None,
    ) -> Reply:
        stream = ReplyStream(on_delta)
        try:
            async with self._sent(client, body) as response:
                return await _read(stream, response)
        except BrokenReply as broken:
            failure = self._failures.of_reply(broken)
            if stream.delivered and isinstance(failure, Transient):
                # The listener has the beginning: a second attempt would tell it twice (FB-23).
                raise failure.error from broken
            raise failure from broken

    @asynccontextmanager
    async def _sent(
        self, client: anthropic.AsyncAnthropic, body: dict[str, Any]
    ) -> AsyncIterator[httpx2.Response]:
        """The response to `body`, closed at the end. What the SDK raises is told in our errors."""
        import anthropic
        import httpx2

        try:
            sent = await client.post(
                PATH,
                cast_to=httpx2.Response,
                body=body,
                stream="stream" in body,
                stream_cls=anthropic.AsyncStream[Any],
            )
        except UnicodeEncodeError as error:
            raise RequestInvalid(f"the request holds text that is not Unicode: {error}") from error
        except anthropic.APIStatusError as error:
            raise self._failures.of_status(error, self._clock.now()) from error
        except anthropic.APIConnectionError as error:
            raise self._failures.of_connection(error) from error
        response = cast("httpx2.Response", sent)  # asked for with `cast_to`, streaming or not
        try:
            yield response
        finally:
            await response.aclose()


async def _read(stream: ReplyStream, response: httpx2.Response) -> Reply:
    """The reply in the body; a connection that breaks before its end is a broken reply."""
    import httpx2

    try:
        # To the very end, past the last event: only then can the connection be used again.
        async for chunk in response.aiter_bytes():
            stream.feed(chunk)
    except httpx2.HTTPError as error:
        if not stream.complete:
            raise BrokenReply(f"{type(error).__name__}: {describe(error)}") from error
    return stream.reply()
