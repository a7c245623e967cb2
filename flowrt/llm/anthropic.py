"""Anthropic's models through the official SDK, which is imported at the first call: it costs more
than a second."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from flowrt.errors import ConnectorError, ModelError, ModelRefused, ModelUnavailable, PromptTooLong
from flowrt.llm.anthropic_stream import StreamedReply
from flowrt.llm.model import Delta, Reply, Request, Usage
from flowrt.observe.masking import mask_text

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

# Above this many tokens the SDK refuses to call without streaming: the answer could take longer
# than its ten minutes.
_LARGEST_WITHOUT_STREAM = 16_000

_TOO_LONG = ("prompt is too long", "context window", "too many tokens", "input length")


class AnthropicModel:
    """A `ChatModel` behind the Messages API.

    Replies are taken as the JSON that was sent, not as the SDK's objects: blocks that neither knows
    survive byte for byte. Retries of 408, 409, 429, 5xx and lost connections, with `retry-after`,
    are the SDK's own, `max_retries` times. A client belongs to a running service: `close` lets it
    go, the next call makes another.
    """

    provider = "ANTHROPIC"

    def __init__(
        self,
        *,
        name: str,
        api_key: str,
        model: str = "claude-sonnet-4-6",
        max_tokens: int = 4096,
        base_url: str | None = None,
        thinking: Literal["off", "adaptive", "budgeted"] = "off",
        thinking_budget: int | None = None,
        timeout: float = 600.0,
        max_retries: int = 4,
    ) -> None:
        self.name = name
        self.model = model
        self._api_key = api_key
        self._max_tokens = max_tokens
        self._base_url = base_url
        self._thinking = thinking
        self._thinking_budget = thinking_budget
        self._timeout = timeout
        self._max_retries = max_retries
        self._client: AsyncAnthropic | None = None

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def complete(
        self, request: Request, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply:
        """Send a request; see `ChatModel`."""
        client = self._connected()
        body = self._body(request)
        stream = on_delta is not None or body["max_tokens"] > _LARGEST_WITHOUT_STREAM
        from anthropic import APIError

        try:
            if stream:
                return await self._streamed(client, body, on_delta)
            raw = await client.messages.with_raw_response.create(**body)
            return _reply(json.loads(raw.http_response.content))
        except APIError as error:
            raise self._failure(error, client, stream=stream) from error

    def _connected(self) -> AsyncAnthropic:
        if self._client is None:
            from anthropic import AnthropicError, AsyncAnthropic

            try:
                self._client = AsyncAnthropic(
                    api_key=self._api_key,
                    base_url=self._base_url,
                    timeout=self._timeout,
                    max_retries=self._max_retries,
                )
            except AnthropicError as error:
                raise ConnectorError(f"connector {self.name!r}: {mask_text(str(error))}") from error
        return self._client

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": request.model or self.model,
            "max_tokens": request.max_tokens or self._max_tokens,
            "messages": request.messages,
        }
        if request.system:
            body["system"] = request.system
        if request.tools:
            body["tools"] = request.tools
            if request.tool_choice is not None:
                body["tool_choice"] = request.tool_choice
        if self._thinking == "adaptive":
            body["thinking"] = {"type": "adaptive"}
        elif self._thinking == "budgeted":
            body["thinking"] = {"type": "enabled", "budget_tokens": self._thinking_budget}
        if request.temperature is not None:
            # Newer SDKs have no such keyword any more; the API still takes it.
            body["extra_body"] = {"temperature": request.temperature}
        return body

    async def _streamed(
        self,
        client: AsyncAnthropic,
        body: dict[str, Any],
        on_delta: Callable[[Delta], None] | None,
    ) -> Reply:
        """Read a stream; one that breaks before a piece was delivered is asked for again."""
        from anthropic import APIError

        for attempt in range(self._max_retries + 1):
            reply = StreamedReply(on_delta)
            try:
                async with await client.messages.create(**body, stream=True) as events:
                    async for event in events:
                        reply.feed(event.to_dict())
                return _reply(reply.finish())
            except APIError as error:
                broken = reply.started and _may_pass(error)
                if not broken or reply.delivered or attempt == self._max_retries:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _failure(self, error: Any, client: AsyncAnthropic, *, stream: bool) -> ModelError:
        from anthropic import APIConnectionError, APIStatusError

        url = f"{str(client.base_url).rstrip('/')}/v1/messages"
        what = "llm-anthropic stream" if stream else "llm-anthropic"
        place = f'connector {self.name!r}: {what}: Post "{mask_text(url)}"'
        text = mask_text(str(error))
        if isinstance(error, APIConnectionError):
            return ModelUnavailable(f"{place}: {text} {mask_text(str(error.__cause__ or ''))}")
        status = error.status_code if isinstance(error, APIStatusError) else None
        if status in (400, 413) and any(sign in text.lower() for sign in _TOO_LONG):
            return PromptTooLong(f"{place}: {text}", status=status)
        if status is None or not _may_pass(error):
            return ModelRefused(f"{place}: {text}", status=status)
        return ModelUnavailable(f"{place}: {text}", status=status)


def _may_pass(error: Any) -> bool:
    """Whether the same request may succeed later."""
    from anthropic import APIConnectionError, APIStatusError

    if isinstance(error, APIConnectionError):
        return True
    if not isinstance(error, APIStatusError):
        return False
    body = error.body if isinstance(error.body, dict) else {}
    kind = (body.get("error") or {}).get("type", "")
    # An error inside a stream arrives with the stream's own status, 200.
    if error.status_code == 200:
        return kind in ("overloaded_error", "api_error", "rate_limit_error", "timeout_error")
    return error.status_code in (408, 409, 429) or error.status_code >= 500


def _reply(message: dict[str, Any]) -> Reply:
    usage = message.get("usage")
    return Reply(
        message["content"],
        message.get("stop_reason") or "end_turn",
        message.get("model", ""),
        _usage(usage) if usage else None,
    )


def _usage(usage: dict[str, Any]) -> Usage:
    details = usage.get("output_tokens_details") or {}
    return Usage(
        input_tokens=usage.get("input_tokens") or 0,
        output_tokens=usage.get("output_tokens") or 0,
        cached_tokens=usage.get("cache_read_input_tokens") or 0,
        cache_write_tokens=usage.get("cache_creation_input_tokens") or 0,
        thinking_tokens=details.get("thinking_tokens") or 0,
    )
