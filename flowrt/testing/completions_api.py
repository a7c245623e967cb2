"""A fake of OpenAI's Chat Completions and Embeddings APIs: a real HTTP server that plays a script.

It refuses with a 400 what the real APIs refuse, so that a test fails where production would.
"""

from __future__ import annotations

import base64
import json
from array import array
from collections.abc import Callable, Collection, Iterable
from typing import Any, Self

from flowrt.ids import new_id
from flowrt.llm.model import Request
from flowrt.testing.completions_refusals import Body, Refusal, embedding_refusals, refusals
from flowrt.testing.completions_script import (
    finish_reason,
    reply_message,
    stream_chunks,
    whole_completion,
)
from flowrt.testing.completions_tokens import (
    DIMENSIONS,
    PromptCache,
    count_message,
    count_request,
    count_text,
    vector,
)
from flowrt.testing.loopback import Answer, Call
from flowrt.testing.replies import FakeReply, parse_reply
from flowrt.testing.scripted_api import Refused, ScriptedAPI

CHAT, EMBEDDINGS = "/v1/chat/completions", "/v1/embeddings"

_REASONING = ("reasoning_content", "reasoning", "reasoning_details", "extra_content")

_KINDS = {429: "rate_limit_error"}


class FakeCompletionsAPI(ScriptedAPI):
    """The Chat Completions and Embeddings APIs on a loopback port, while the `with` block runs.

    `replies` are played in order, one a chat request: texts, mappings with the fields of
    `FakeReply`, or `FakeReply`s; those with a `when` (CEL over `request`) come first, any number of
    times. When they are used up, `reply` is called with the request's body and returns an entry. A
    request for which neither has anything is refused, and the test sees why. Embeddings need no
    script: they are computed from the words of the texts.

    `window` is the longest prompt in tokens. With `api_key`, other keys are refused. `extras` are
    names of parameters and fields that the server takes besides OpenAI's own, such as
    OpenRouter's `reasoning`; what it sent itself beside a message it takes back unchanged.

    `base_url` is where it serves. `requests` are the calls of ``/chat/completions`` in order,
    `embeddings` those of ``/embeddings``, `refused` the texts of all refusals that no script asked
    for.

    ```python
    with FakeCompletionsAPI(replies=["Hello."]) as api:
        client = openai.AsyncOpenAI(api_key="any", base_url=api.base_url)
    ```
    """

    def __init__(
        self,
        replies: Iterable[Any] = (),
        *,
        reply: Callable[[Body], Any] | None = None,
        window: int = 200_000,
        api_key: str | None = None,
        extras: Collection[str] = (),
    ) -> None:
        super().__init__(replies, reply)
        self.embeddings: list[Call] = []
        self._window = window
        self._api_key = api_key
        self._extras = frozenset(extras)
        self._cache = PromptCache()
        self._sent: set[str] = set()
        self._embedding_script: list[FakeReply] = []

    def __enter__(self) -> Self:
        super().__enter__()
        self.base_url += "/v1"
        return self

    def add_embeddings(self, *replies: Any) -> None:
        """What happens to the next requests for embeddings: `error`, `hold`, `disconnect`, `delay`.

        Those that do not fail are answered with the vectors all the same.
        """
        self._embedding_script += map(parse_reply, replies)

    async def _handle(self, call: Call) -> Answer:
        headers = {"x-request-id": f"req_{new_id()[:24]}"}
        try:
            body = self._admitted(call)
            if call.path == EMBEDDINGS:
                return await self._embed(body, headers)
            return await self._answer(body, headers)
        except Refused as refused:
            data = {"error": _error(refused)}
            return Answer(refused.status, [_encode(data)], {**headers, **refused.headers})

    def _admitted(self, call: Call) -> Body:
        """The body of a request that the API would work on. Raises `Refused`."""
        {EMBEDDINGS: self.embeddings}.get(call.path, self.requests).append(call)
        try:
            return self._read(call)
        except Refused as refused:
            self.refused.append(str(refused))
            raise

    def _read(self, call: Call) -> Body:
        if call.path not in (CHAT, EMBEDDINGS):
            raise Refused(404, f"Invalid URL ({call.method} {call.path})")
        if call.method != "POST":
            raise Refused(405, f"Not allowed to {call.method} on {call.path}.")
        self._check_key(call.headers.get("authorization", ""))
        try:
            call.body = json.loads(call.raw.decode())
        except ValueError as error:
            raise Refused(400, "We could not parse the JSON body of your request.") from error
        body: Body = call.body
        if call.path == EMBEDDINGS:
            _refuse(embedding_refusals(body, count_text))
            return body
        _refuse(refusals(body, extras=self._extras.union(_REASONING)))
        self._check_reasoning(body)
        tokens = count_request(body)
        if tokens > self._window:
            raise Refused(
                400,
                f"This model's maximum context length is {self._window} tokens. However, your "
                f"messages resulted in {tokens} tokens. Please reduce the length of the messages.",
                code="context_length_exceeded",
                param="messages",
            )
        return body

    def _check_key(self, header: str) -> None:
        scheme, _, key = header.partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise Refused(
                401,
                "You didn't provide an API key. You need to provide your API key in an "
                "Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
            )
        if self._api_key not in (None, key):
            raise Refused(401, f"Incorrect API key provided: {key[:3]}***.", code="invalid_api_key")

    def _check_reasoning(self, body: Body) -> None:
        """What models thought is taken back unchanged by the one that thought it, else not."""
        for index, message in enumerate(body["messages"]):
            calls = message.get("tool_calls") or ()
            places = [(f"messages[{index}]", message)]
            places += [(f"messages[{index}].tool_calls[{at}]", call) for at, call in
                       enumerate(calls)]  # fmt: skip
            for place, holder in places:
                for name in _REASONING:
                    if name in self._extras or name not in holder:
                        continue
                    if _seal(body["model"], name, holder[name]) not in self._sent:
                        raise Refused(
                            400,
                            f"Unknown parameter: '{place}.{name}'.",
                            code="unknown_parameter",
                            param=f"{place}.{name}",
                        )

    async def _answer(self, body: Body, headers: dict[str, str]) -> Answer:
        entry = self._pick(body, lambda: _request(body))
        await self._wait(entry)
        model = body["model"]
        message = reply_message(entry)
        for holder in (message, *message.get("tool_calls", ())):
            self._sent |= {_seal(model, name, holder[name]) for name in _REASONING
                           if name in holder}  # fmt: skip
        usage = self._usage(entry, body, message)
        answer = _answer(entry, headers, stream=bool(body.get("stream")))
        if not answer.stream:
            answer.parts = [_encode(whole_completion(message, finish_reason(entry), model, usage))]
            return answer
        counted = (body.get("stream_options") or {}).get("include_usage")
        chunks = stream_chunks(message, finish_reason(entry), model, usage if counted else None)
        answer.parts = [*(_event(_encode(chunk)) for chunk in chunks), _event(b"[DONE]")]
        if entry.stream_error is not None:
            refused = Refused(500, entry.message or "The server had an error", code="server_error")
            answer.parts[entry.stream_error :] = [_event(_encode({"error": _error(refused)}))]
        return answer

    def _usage(self, entry: FakeReply, body: Body, message: dict[str, Any]) -> dict[str, Any]:
        cached = self._cache.read(body)
        prompt, output = count_request(body), count_message(message)
        thought = count_text(message.get("reasoning_content") or "")
        if entry.usage is not None:
            cached = entry.usage.cached_tokens
            prompt = entry.usage.input_tokens + cached + entry.usage.cache_write_tokens
            output, thought = entry.usage.output_tokens, entry.usage.thinking_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": thought, "audio_tokens": 0},
        }

    async def _embed(self, body: Body, headers: dict[str, str]) -> Answer:
        entry = self._embedding_script.pop(0) if self._embedding_script else FakeReply(text="")
        await self._wait(entry)
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        size = body.get("dimensions", DIMENSIONS)
        vectors = [array("f", vector(text, body["model"], size)) for text in texts]
        packed = body.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": _packed(numbers) if packed else numbers.tolist(),
            }
            for index, numbers in enumerate(vectors)
        ]
        tokens = sum(map(count_text, texts))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        answer = _answer(entry, headers, stream=False)
        answer.parts = [
            _encode({"object": "list", "data": data, "model": body["model"], "usage": usage})
        ]
        return answer


def _answer(entry: FakeReply, headers: dict[str, str], *, stream: bool) -> Answer:
    return Answer(
        200,
        [],
        {**headers, **entry.headers},
        stream=stream,
        hold=entry.hold,
        hold_after=entry.hold_after,
        disconnect=entry.disconnect,
    )


def _refuse(found: Iterable[Refusal]) -> None:
    for refusal in found:
        raise Refused(400, refusal.text, code=refusal.code, param=refusal.param)


def _request(body: Body) -> Request:
    """The request as conditions see it, which is as the Messages API would have got it."""
    system = [m for m in body["messages"] if m["role"] in ("system", "developer")]
    return Request(
        messages=[_canonical(m) for m in body["messages"] if m not in system],
        system=[part for message in system for part in _parts(message)],
        tools=body.get("tools", []),
    )


def _canonical(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"]}
        return {"role": "user", "content": [{**result, "content": _parts(message)}]}
    calls = [
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["function"]["name"],
            "input": call["function"]["arguments"],
        }
        for call in message.get("tool_calls") or ()
    ]
    return {"role": message["role"], "content": [*_parts(message), *calls]}


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content") or []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _seal(model: str, name: str, value: Any) -> str:
    return f"{model} {name} {json.dumps(value)}"


def _packed(numbers: array[float]) -> str:
    return base64.b64encode(numbers.tobytes()).decode()


def _error(refused: Refused) -> dict[str, Any]:
    kind = "server_error" if refused.status >= 500 else "invalid_request_error"
    return {
        "message": str(refused),
        "type": _KINDS.get(refused.status, kind),
        "param": refused.param,
        "code": refused.code,
    }


def _encode(value: Any) -> bytes:
    # Half a character can only be escaped.
    return json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace")


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"
