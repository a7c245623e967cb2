"""A local stand-in for Anthropic's Messages API: real HTTP, so that the real SDK is under test.

It refuses what the real one refuses, counts tokens over the whole request, has a window, keeps a
prompt cache, and records each request. Needs the extra `testing`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from flowrt.testing.messages_rules import refusal
from flowrt.testing.messages_script import (
    FakeReply,
    Gate,
    count_tokens,
    error_json,
    message_json,
    stream_events,
)

Answer = FakeReply | str
Handler = Callable[[dict[str, Any]], Answer]


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived. `status` is what it was answered with."""

    body: dict[str, Any]
    raw: bytes
    headers: dict[str, str]
    status: int

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the request."""
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages


@dataclass
class FakeMessagesAPI:
    """A fake Messages API on a free loopback port, as a context manager.

    `replies` answer in order; a text is a reply of that text. `answer` answers what they do not,
    from the request's body. `window` is the largest prompt in tokens. `gate`, where given, holds
    each reply until it is opened. A request that nothing answers gets status 500 and a text that
    says so.

    ::

        with FakeMessagesAPI(["Hello."]) as api:
            ...  # use api.base_url as the connector's baseURL, with any apiKey
            assert "Hi" in api.requests[0].raw.decode()
    """

    replies: Sequence[Answer] = ()
    answer: Handler | None = None
    window: int = 200_000
    gate: Gate | None = None
    requests: list[Received] = field(default_factory=list)
    base_url: str = ""

    def __post_init__(self) -> None:
        self._queue = list(self.replies)
        self._sent_thinking: dict[str, str] = {}
        self._cached: set[str] = set()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def add(self, *replies: Answer) -> None:
        """Answer further requests with these, in order."""
        self._queue += replies

    def __enter__(self) -> Self:
        # Made with a protocol of 0, as `socket.socket()` does, it would never get TCP_NODELAY and
        # every call would take 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.bind(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        routes = [
            Route("/v1/messages", self._messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", self._count, methods=["POST"]),
        ]
        listener.listen(512)
        config = uvicorn.Config(
            Starlette(routes=routes), log_level="critical", lifespan="off", ws="none"
        )
        self._server = server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=lambda: server.run(sockets=[listener]), name="fake-messages-api", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        assert self._thread is not None
        if self.gate is not None:
            self.gate.open()
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join()

    async def _count(self, request: Request) -> Response:
        body, fault = self._parsed(request, await request.body())
        if fault is not None:
            return fault
        return JSONResponse({"input_tokens": count_tokens(body)})

    async def _messages(self, request: Request) -> Response:
        raw = await request.body()
        body, fault = self._parsed(request, raw)
        if fault is None:
            reply = self._next(body)
            response = await self._answered(body, reply)
        else:
            response = fault
        headers = {key.lower(): value for key, value in request.headers.items()}
        self.requests.append(Received(body, raw, headers, response.status_code))
        return response

    def _parsed(self, request: Request, raw: bytes) -> tuple[dict[str, Any], Response | None]:
        """The body, and the refusal where there is one."""
        if not (request.headers.get("x-api-key") or request.headers.get("authorization")):
            return {}, _error(401, "x-api-key header is required")
        try:
            body = json.loads(raw.decode("utf-8"))
        except ValueError as error:
            return {}, _error(400, f"The request body is not valid JSON: {error}")
        why = refusal(body, self._sent_thinking)
        if why is not None:
            return body, _error(400, why)
        tokens = count_tokens(body)
        if tokens > self.window:
            return body, _error(400, f"prompt is too long: {tokens} tokens > {self.window} maximum")
        return body, None

    def _next(self, body: dict[str, Any]) -> FakeReply:
        if self._queue:
            answer = self._queue.pop(0)
        elif self.answer is not None:
            answer = self.answer(body)
        else:
            return FakeReply(error=500, message="the fake has no reply left for this request")
        return FakeReply(text=answer) if isinstance(answer, str) else answer

    async def _answered(self, body: dict[str, Any], reply: FakeReply) -> Response:
        if self.gate is not None:
            await asyncio.to_thread(self.gate.wait)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        if reply.disconnect:
            return StreamingResponse(_broken())
        if reply.error is not None:
            text = reply.message or f"scripted failure {reply.error}"
            return JSONResponse(error_json(reply.error, text), reply.error, reply.headers)
        message = message_json(reply, body, self._usage(body, reply))
        self._remember_thinking(message["content"])
        if not body.get("stream"):
            return JSONResponse(message)
        return StreamingResponse(stream_events(message, reply), media_type="text/event-stream")

    def _remember_thinking(self, content: list[dict[str, Any]]) -> None:
        for block in content:
            if block.get("type") == "thinking" and block.get("signature"):
                self._sent_thinking[block["signature"]] = block["thinking"]
            elif block.get("type") == "redacted_thinking":
                self._sent_thinking[block["data"]] = ""

    def _usage(self, body: dict[str, Any], reply: FakeReply) -> dict[str, int]:
        """Tokens, with those before a breakpoint seen earlier counted as read from the cache."""
        if reply.usage is not None:
            given = reply.usage
            return {
                "input_tokens": given.input_tokens,
                "output_tokens": given.output_tokens,
                "cache_read_input_tokens": given.cached_tokens,
                "cache_creation_input_tokens": given.cache_write_tokens,
            }
        total = count_tokens(body)
        prefixes = list(_prefixes(body))
        read = max((size for key, size in prefixes if key in self._cached), default=0)
        written = max((size for _, size in prefixes), default=0)
        self._cached.update(key for key, _ in prefixes)
        blocks = json.dumps(reply.blocks(), ensure_ascii=False)
        return {
            "input_tokens": total - max(read, written),
            "output_tokens": len(blocks) // 3,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": max(0, written - read),
        }


def _prefixes(body: dict[str, Any]) -> list[tuple[str, int]]:
    """Each prefix of the request that ends at a cache breakpoint, with its tokens."""
    found = []
    system = body.get("system") or []
    parts: dict[str, Any] = {"tools": body.get("tools") or [], "system": system, "messages": []}
    if any("cache_control" in block for block in [*parts["tools"], *system]):
        found.append(_prefix(parts))
    for message in body["messages"]:
        content = message["content"]
        parts["messages"].append(message)
        if isinstance(content, list) and any("cache_control" in block for block in content):
            found.append(_prefix(parts))
    return found


def _prefix(parts: dict[str, Any]) -> tuple[str, int]:
    text = json.dumps(_unmarked(parts), sort_keys=True)
    return text, count_tokens(parts)


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    return value


def _error(status: int, text: str) -> Response:
    return JSONResponse(error_json(status, text), status)


async def _broken() -> AsyncIterator[bytes]:
    for piece in (b"{",):
        yield piece
    raise ConnectionResetError("scripted disconnect")
