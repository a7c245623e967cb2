"""Chat Completions as a `ChatModel`: OpenAI, and whatever speaks its API at another address.

Requests are turned from the Messages API's blocks into chat messages (`openai_messages`) and
replies back into blocks (`openai_reply`), as JSON: the SDK's typed objects would drop the fields
that other servers add.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from flowrt.errors import ModelRefused, describe
from flowrt.llm.failures import BrokenReply
from flowrt.llm.model import Delta, Reply, Request
from flowrt.llm.openai_client import OpenAIClient
from flowrt.llm.openai_errors import NO_EFFORT_WITH_TOOLS
from flowrt.llm.openai_messages import chat_messages, chat_tool_choice, chat_tools
from flowrt.llm.openai_reply import ReplyStream, read_reply
from flowrt.llm.retry import Transient, with_retries
from flowrt.observe.log import get_logger

if TYPE_CHECKING:
    import httpx2
    import openai

API = "https://api.openai.com/v1"
PATH = "/chat/completions"

_OLD_LENGTH, _NEW_LENGTH = "max_tokens", "max_completion_tokens"

_log = get_logger("flowrt.llm")


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """What a connector asks of its chat model.

    `max_tokens` None leaves the length of replies to the model. `extra` goes into every request as
    it is. With `marks`, `cache_control` is sent to models whose names begin with `anthropic/`.
    """

    model: str
    max_tokens: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    marks: bool = False


class OpenAIModel:
    """A chat model behind `client`, which it does not own."""

    def __init__(self, client: OpenAIClient, settings: ChatSettings) -> None:
        self.name = client.access.name
        self.provider = client.access.provider
        self._client = client
        self._settings = settings
        self._failures = client.failures("stream", PATH)
        self._length = length_field(client.access.base_url)
        self._thoughtless: set[str] = set()

    async def __aenter__(self) -> Self:
        await self._client.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def complete(
        self, request: Request, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply:
        """Ask the model; see `ChatModel`. Cancelling it ends the HTTP exchange at once."""
        while True:
            body = self._body(request)
            try:
                return await self._ask(request, body, on_delta)
            except ModelRefused as refused:
                if not self._learn(str(refused), body):
                    raise

    def _learn(self, refused: str, body: dict[str, Any]) -> bool:
        """Note what this server wants otherwise; False where that is not why it refused `body`."""
        if NO_EFFORT_WITH_TOOLS in refused and "reasoning_effort" not in body:
            # OpenAI's models from gpt-5.4 on reason by default, and take tools here only where
            # they may not. Where the file says how much they may, it is for its author to choose.
            self._thoughtless.add(body["model"])
            _log.warning("the model takes tools only without reasoning; it is turned off for them",
                         connector=self.name, model=body["model"])  # fmt: skip
            return True
        if _NEW_LENGTH in refused and _OLD_LENGTH in body:
            # OpenAI at another address, such as Azure's or a gateway's.
            self._length = _NEW_LENGTH
            return True
        return False

    async def _ask(
        self, request: Request, body: dict[str, Any], on_delta: Callable[[Delta], None] | None
    ) -> Reply:
        used = {
            block["id"]
            for message in request.messages
            for block in message["content"]
            if block.get("type") == "tool_use"
        }

        sdk = await self._client.sdk()

        async def attempt() -> Reply:
            if on_delta is None:
                return await self._whole(sdk, body, used)
            streaming = {"stream": True, "stream_options": {"include_usage": True}}
            return await self._streamed(sdk, {**body, **streaming}, used, on_delta)

        access = self._client.access
        return await with_retries(
            attempt,
            retries=access.max_retries,
            patience=access.timeout,
            clock=access.clock,
            name=self.name,
        )

    def _body(self, request: Request) -> dict[str, Any]:
        settings = self._settings
        model = request.model or settings.model
        marks = settings.marks and model.startswith("anthropic/")
        messages = chat_messages(request, self._signature(model), marks=marks)
        body: dict[str, Any] = {"model": model, "messages": messages, **settings.extra}
        if length := request.max_tokens or settings.max_tokens:
            body[self._length] = length
        if request.tools:
            body["tools"] = chat_tools(request.tools)
            if model in self._thoughtless:
                body["reasoning_effort"] = "none"
            if request.tool_choice is not None:
                body["tool_choice"] = chat_tool_choice(request.tool_choice)
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return body

    def parameters(self, request: Request) -> dict[str, Any]:
        """What goes out beside messages and tools, under the names of the Messages API."""
        length = request.max_tokens or self._settings.max_tokens
        told = {"model": request.model or self._settings.model, **self._settings.extra}
        if length:
            told["max_tokens"] = length
        if request.temperature is not None:
            told["temperature"] = request.temperature
        return told

    def _signature(self, model: str) -> str:
        return f"{self.provider} {model}"

    async def _whole(self, sdk: openai.AsyncOpenAI, body: dict[str, Any], used: set[str]) -> Reply:
        async with self._client.post(sdk, PATH, body, self._failures) as response:
            try:
                signature = self._signature(body["model"])
                return read_reply(json.loads(response.content), signature, used)
            except (ValueError, BrokenReply) as error:
                raise self._failures.of_reply(error) from error

    async def _streamed(
        self,
        sdk: openai.AsyncOpenAI,
        body: dict[str, Any],
        used: set[str],
        on_delta: Callable[[Delta], None],
    ) -> Reply:
        stream = ReplyStream(on_delta, self._signature(body["model"]), used)
        try:
            async with self._client.post(sdk, PATH, body, self._failures) as response:
                return await _read(stream, response)
        except BrokenReply as broken:
            failure = self._failures.of_reply(broken)
            if stream.delivered and isinstance(failure, Transient):
                # The listener has the beginning: a second attempt would tell it twice (FB-23).
                raise failure.error from broken
            raise failure from broken


def length_field(base_url: str) -> str:
    """What the length of a reply is called: OpenAI's models refuse the old name, others the new."""
    own = urlsplit(base_url).hostname == urlsplit(API).hostname
    return _NEW_LENGTH if own else _OLD_LENGTH


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
