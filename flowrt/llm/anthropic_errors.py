"""Failures of the Messages API in flowrt's own errors: try again, give up, or cut the prompt."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from flowrt.errors import ModelError
from flowrt.llm.failures import BrokenReply, ProviderFailures
from flowrt.llm.retry import Transient

if TYPE_CHECKING:
    import anthropic

# The status that an error inside a stream would have had outside of one (API reference, "Errors").
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def event_failure(event: dict[str, Any]) -> BrokenReply:
    """What an `error` event of a stream says."""
    kind, text = _said(event)
    return BrokenReply(f"{kind} in the stream: {text}", status=_STATUS.get(kind, 500))


class Failures(ProviderFailures):
    """Tells the failures of one connector's calls of the Messages API."""

    api = "the Messages API"

    def __init__(self, name: str, url: str, key: str) -> None:
        super().__init__(f'connector {name!r}: llm-anthropic stream: Post "{url}"', key)

    def of_status(self, error: anthropic.APIStatusError, now: datetime) -> ModelError | Transient:
        """A status of 400 or more, with what the provider said and the way out."""
        status, headers = error.status_code, error.response.headers
        kind, said = _said(error.body)
        text = f"{status} {kind or 'error'}: {said or error.message}"
        return self.of_answer(text, status, headers, now, request_id=headers.get("request-id"))


def _said(body: object) -> tuple[str, str]:
    """The kind and text of an error body; of something else (a proxy's page), its beginning."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        return str(error.get("type", "")), str(error.get("message", ""))
    return "", str(body)[:500] if body is not None else ""
