"""Failures of the Messages API, told in flowrt's own errors and without the key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowrt.errors import ModelError, ModelRefused, ModelUnavailable, PromptTooLong
from flowrt.observe.masking import MASK, mask_text

if TYPE_CHECKING:
    import anthropic
    import httpx2

RETRY_COUNT = "x-stainless-retry-count"
"""The request header in which the SDK counts its retries."""

# The status that an error inside a stream would have had outside of one (API reference, "Errors").
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}

_TOO_LONG = ("prompt is too long", "exceed context limit", "model_context_window_exceeded")

_WAYS_OUT = {
    401: "check the connector's apiKey",
    403: "check what the connector's apiKey may do",
    404: "check the connector's model and baseURL",
    413: "the request is larger than the API takes; send smaller files or results",
}


class BrokenReply(Exception):
    """A reply that came in part, or with an error in it. Never leaves `flowrt.llm`.

    `passing` says that asking again may help.
    """

    def __init__(self, text: str, *, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.passing = status is None or is_passing(status)


def is_passing(status: int) -> bool:
    """Whether the provider means that the same request may succeed later."""
    return status in (408, 409, 429) or status >= 500


def event_failure(event: dict[str, Any]) -> BrokenReply:
    """What an `error` event of a stream says."""
    kind, text = _said(event)
    return BrokenReply(f"{kind} in the stream: {text}", status=_STATUS.get(kind, 500))


def status_failure(where: str, error: anthropic.APIStatusError, key: str) -> ModelError:
    """The error for a status of 400 or more, with what the provider said and the way out."""
    kind, text = _said(error.body)
    parts = [f"{where}: {error.status_code} {kind or 'error'}: {text or error.message}"]
    tries = retries_of(error.response) + 1
    if tries > 1:
        parts.append(f"asked {tries} times")
    if way_out := _WAYS_OUT.get(error.status_code):
        parts.append(way_out)
    if request_id := error.response.headers.get("request-id"):
        parts.append(f"request-id {request_id}")
    return failure("; ".join(parts), error.status_code, key)


def failure(text: str, status: int | None, key: str) -> ModelError:
    """The error of the right class for `status`; None is a provider that did not answer."""
    # A provider that quotes the key it was given would otherwise put it into logs and traces.
    text = mask_text(text.replace(key, MASK) if key else text)
    if status is None or is_passing(status):
        return ModelUnavailable(text, status=status)
    if status == 400 and any(sign in text for sign in _TOO_LONG):
        return PromptTooLong(text, status=status)
    return ModelRefused(text, status=status)


def retries_of(response: httpx2.Response) -> int:
    """How often the SDK had asked before it got this response."""
    return int(response.request.headers.get(RETRY_COUNT, "0"))


def _said(body: object) -> tuple[str, str]:
    """The kind and text of an error body; of something else (a proxy's page), its beginning."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        return str(error.get("type", "")), str(error.get("message", ""))
    return "", str(body)[:500] if body is not None else ""
