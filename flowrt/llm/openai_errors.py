"""Failures of Chat Completions and Embeddings servers, of which each has a shape of its own."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from flowrt.errors import ModelError, ModelRefused
from flowrt.llm.failures import BrokenReply, ProviderFailures
from flowrt.llm.retry import Transient

if TYPE_CHECKING:
    import openai

NO_EFFORT_WITH_TOOLS = "Function tools with reasoning_effort are not supported"
"""What OpenAI says to tools while a model of the gpt-5.4 family or later may reason."""

_QUOTA = "insufficient_quota"


class Failures(ProviderFailures):
    """Tells the failures of one connector's calls. `what` is `stream` or `embed`."""

    api = "the Chat Completions API"

    def __init__(self, kind: str, name: str, what: str, url: str, key: str) -> None:
        super().__init__(f'connector {name!r}: {kind} {what}: Post "{url}"', key)

    def of_status(self, error: openai.APIStatusError, now: datetime) -> ModelError | Transient:
        """A status of 400 or more, with what the provider said and the way out."""
        status, headers = error.status_code, error.response.headers
        kind, said = said_in(error.body)
        text = f"{status} {kind or 'error'}: {said or error.message}"
        failure = self.of_answer(text, status, headers, now, request_id=headers.get("x-request-id"))
        if status == 429 and _QUOTA in kind:
            # Told with the status of a rate limit, and true until somebody pays.
            return ModelRefused(str(failure), status=status)
        return failure

    def way_out(self, text: str, status: int) -> str:
        """What the reader can do about it; empty where nobody knows."""
        if _QUOTA in text:
            status = 402
        if NO_EFFORT_WITH_TOOLS in text:
            return "set the connector's reasoning: none"
        return super().way_out(text, status)


def error_in(event: dict[str, Any]) -> BrokenReply:
    """What an `error` in a reply or in an event of a stream says, which came with status 200."""
    kind, said = said_in(event["error"])
    code = event["error"].get("code") if isinstance(event["error"], dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return BrokenReply(f"{kind or 'error'} in the reply: {said}", status=status)


def said_in(body: object) -> tuple[str, str]:
    """The kind and text of an error body; of something else (a proxy's page), its beginning.

    The SDK has taken most bodies out of their `error` already. Gemini wraps that in a list;
    OpenRouter has what the provider behind it said under `metadata.raw`.
    """
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict):
        error = body.get("error", body)
        if isinstance(error, dict) and "message" in error:
            kinds = [str(error[key]) for key in ("type", "status", "code") if error.get(key)]
            text = str(error["message"])
            metadata = error.get("metadata")
            if isinstance(metadata, dict) and metadata.get("raw"):
                text += f" ({str(metadata['raw'])[:500]})"
            return " ".join(dict.fromkeys(kinds)), text
        body = error
    return "", str(body)[:500] if body is not None else ""
