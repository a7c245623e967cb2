"""A fake of Anthropic's Messages API: a real HTTP server that plays scripted replies.

It refuses with a 400 what the real API refuses, so that a test fails where production would.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from flowrt.ids import new_id
from flowrt.llm.model import Request
from flowrt.testing.loopback import Answer, Call
from flowrt.testing.messages_refusals import Body, blocks_of, refusals
from flowrt.testing.messages_script import (
    sign,
    signed_blocks,
    stream_events,
    whole_message,
)
from flowrt.testing.messages_tokens import PromptCache, count_block, count_request
from flowrt.testing.replies import FakeReply
from flowrt.testing.scripted_api import Refused, ScriptedAPI

MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"

_LARGEST = 32_000_000  # bytes of a request; the API's own limit

_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class FakeMessagesAPI(ScriptedAPI):
    """The Messages API on a loopback port, for as long as the `with` block runs.

    `replies` are played in order, one a request: texts, mappings with the fields of `FakeReply`, or
    `FakeReply`s; those with a `when` (CEL over `request`) come first, any number of times. When
    they are used up, `reply` is called with the request's body and returns an entry. A request for
    which neither has anything is refused, and the test sees why.

    `window` is the longest prompt in tokens. With `api_key`, other keys are refused. `alternate`
    False takes two messages of one role in a row, as the API does since 2025; `prefill` True takes
    a last message from the assistant, as older models do.

    `base_url` is where it serves. `requests` are the calls of ``/v1/messages`` in order, `counts`
    those that counted tokens, `refused` the texts of all refusals that no script asked for.

    ```python
    with FakeMessagesAPI(replies=["Hello."]) as api:
        client = anthropic.AsyncAnthropic(api_key="any", base_url=api.base_url)
    ```
    """

    def __init__(
        self,
        replies: Iterable[Any] = (),
        *,
        reply: Callable[[Body], Any] | None = None,
        window: int = 200_000,
        api_key: str | None = None,
        alternate: bool = True,
        prefill: bool = False,
    ) -> None:
        super().__init__(replies, reply)
        self.counts: list[Call] = []
        self._window = window
        self._api_key = api_key
        self._rules = {"alternate": alternate, "prefill": prefill}
        self._cache = PromptCache()
        self._sent: dict[str, str] = {}

    async def _handle(self, call: Call) -> Answer:
        headers = {"request-id": f"req_{new_id()[:24]}"}
        try:
            body = self._admitted(call)
            if call.path == COUNT:
                counted = json.dumps({"input_tokens": count_request(body)}).encode()
                return Answer(200, [counted], headers)
            return await self._answer(body, headers)
        except Refused as refused:
            data = {"type": "error", "error": _error(refused.status, str(refused)), **_id(headers)}
            return Answer(refused.status, [_encode(data)], {**headers, **refused.headers})

    def _admitted(self, call: Call) -> Body:
        """The body of a request that the API would work on. Raises `Refused`."""
        {COUNT: self.counts}.get(call.path, self.requests).append(call)
        try:
            return self._read(call)
        except Refused as refused:
            self.refused.append(str(refused))
            raise

    def _read(self, call: Call) -> Body:
        if call.path not in (MESSAGES, COUNT):
            raise Refused(404, f"Not Found: {call.path}")
        if call.method != "POST":
            raise Refused(405, "Method Not Allowed")
        key = call.headers.get("x-api-key") or _bearer(call.headers.get("authorization", ""))
        if not key:
            raise Refused(401, "x-api-key header is required")
        if self._api_key not in (None, key):
            raise Refused(401, "invalid x-api-key")
        if len(call.raw) > _LARGEST:
            raise Refused(413, "Request exceeds the maximum size")
        try:
            call.body = json.loads(call.raw.decode())
        except ValueError as error:
            raise Refused(400, f"The request body is not valid JSON: {error}") from error
        body: Body = call.body
        if call.path == COUNT and isinstance(body, dict):
            body = {"max_tokens": 1, **body}
        for text in refusals(body, **self._rules):
            raise Refused(400, text)
        self._check_thinking(body)
        tokens = count_request(body)
        if tokens > self._window and call.path == MESSAGES:
            raise Refused(400, f"prompt is too long: {tokens} tokens > {self._window} maximum")
        return body

    def _check_thinking(self, body: Body) -> None:
        """Thinking has to be what was sent out, by this model and unchanged (FB-17)."""
        for index, message in enumerate(body["messages"]):
            for at, block in enumerate(blocks_of(message)):
                if block["type"] not in ("thinking", "redacted_thinking"):
                    continue
                if self._sent.get(_seal(body["model"], block)) == _canonical(block):
                    continue
                if block["type"] == "thinking" and block == _signed(body["model"], block):
                    continue  # also from another fake: threads outlive the server
                raise Refused(
                    400,
                    f"messages.{index}.content.{at}: Invalid `signature` in `{block['type']}` "
                    "block: it was changed, or another model wrote it",
                )

    async def _answer(self, body: Body, headers: dict[str, str]) -> Answer:
        entry = self._pick(body, lambda: _request(body))
        await self._wait(entry)
        model = body["model"]
        blocks = signed_blocks(entry, model)
        for block in blocks:
            if block.get("type") in ("thinking", "redacted_thinking"):
                self._sent[_seal(model, block)] = _canonical(block)
        usage = self._usage(entry, body, blocks)
        answer = Answer(
            200,
            [],
            {**headers, **entry.headers},
            stream=bool(body.get("stream")),
            hold=entry.hold,
            hold_after=entry.hold_after,
            disconnect=entry.disconnect,
        )
        if answer.stream:
            events = list(stream_events(blocks, entry.reason, model, usage))
            if entry.stream_error is not None:
                text = entry.message or "Overloaded"
                events[entry.stream_error :] = [{"type": "error", "error": _error(529, text)}]
            answer.parts = [_event(event) for event in events]
        else:
            answer.parts = [_encode(whole_message(blocks, entry.reason, model, usage))]
        return answer

    def _usage(self, entry: FakeReply, body: Body, blocks: list[Any]) -> dict[str, int]:
        billed = self._cache.bill(body)
        if entry.usage is None:
            return {**billed, "output_tokens": sum(count_block(block) for block in blocks)}
        return {
            "input_tokens": entry.usage.input_tokens,
            "cache_read_input_tokens": entry.usage.cached_tokens,
            "cache_creation_input_tokens": entry.usage.cache_write_tokens,
            "output_tokens": entry.usage.output_tokens,
        }


def _request(body: Body) -> Request:
    system = body.get("system", [])
    return Request(
        messages=[{**message, "content": blocks_of(message)} for message in body["messages"]],
        system=[{"type": "text", "text": system}] if isinstance(system, str) else system,
        tools=body.get("tools", []),
    )


def _bearer(header: str) -> str:
    scheme, _, token = header.partition(" ")
    return token if scheme.lower() == "bearer" else ""


def _signed(model: str, block: dict[str, Any]) -> dict[str, Any]:
    text = block["thinking"]
    return {"type": "thinking", "thinking": text, "signature": sign(model, text)}


def _seal(model: str, block: dict[str, Any]) -> str:
    return f"{model} {block.get('signature') or block.get('data')}"


def _canonical(block: dict[str, Any]) -> str:
    return json.dumps(block, sort_keys=True)


def _id(headers: dict[str, str]) -> dict[str, str]:
    return {"request_id": headers["request-id"]}


def _error(status: int, text: str) -> dict[str, str]:
    kind = _KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": kind, "message": text}


def _encode(value: Any) -> bytes:
    # Half a character can only be escaped.
    return json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace")


def _event(event: dict[str, Any]) -> bytes:
    kind: str = event["type"]
    return b"event: " + kind.encode() + b"\ndata: " + _encode(event) + b"\n\n"
