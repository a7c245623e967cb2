"""Failures of the Messages API in flowrt's own errors: try again, give up, or cut the prompt."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from flowrt.errors import ModelError, ModelRefused, ModelUnavailable, PromptTooLong, describe
from flowrt.llm.retry import Transient, retry_after
from flowrt.observe.masking import MASK, mask_text

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

# The first two are Anthropic's, the others are heard from gateways in front of other models.
_TOO_LONG = re.compile(
    r"prompt is too long|exceed context limit|model_context_window_exceeded|context window"
    r"|maximum context length",
    re.IGNORECASE,
)

_WAYS_OUT = {
    401: "check the connector's apiKey",
    403: "check what the connector's apiKey may do",
    404: "check the connector's model and baseURL",
    413: "the request is larger than the API takes; send smaller files or results",
}


class BrokenReply(Exception):
    """A reply that came in part, or with an error in it. Never leaves `flowrt.llm`.

    `status` is that of an error event, None for a reply that broke off or is malformed.
    """

    def __init__(self, text: str, *, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


def event_failure(event: dict[str, Any]) -> BrokenReply:
    """What an `error` event of a stream says."""
    kind, text = _said(event)
    return BrokenReply(f"{kind} in the stream: {text}", status=_STATUS.get(kind, 500))


class Failures:
    """Tells the failures of one connector's calls, never with its key in the text.

    The results are to be raised: a `Transient` where the same request may succeed later, else a
    `ModelError`. Texts begin as those of other runtimes of the dialect do (dialect 8).
    """

    def __init__(self, name: str, url: str, key: str) -> None:
        self._where = f'connector {name!r}: llm-anthropic stream: Post "{url}"'
        self._key = key

    def of_status(self, error: anthropic.APIStatusError, now: datetime) -> ModelError | Transient:
        """A status of 400 or more, with what the provider said and the way out."""
        status, headers = error.status_code, error.response.headers
        kind, said = _said(error.body)
        parts = [f"{status} {kind or 'error'}: {said or error.message}"]
        if way_out := _WAYS_OUT.get(status):
            parts.append(way_out)
        if request_id := headers.get("request-id"):
            parts.append(f"request-id {request_id}")
        again = {"true": True, "false": False}.get(headers.get("x-should-retry", ""))
        return self._failure("; ".join(parts), status, again, retry_after(headers, now))

    def of_connection(self, error: Exception) -> Transient:
        """The provider was not reached, or the connection broke or was silent for too long."""
        cause = error.__cause__ or error
        text = f"{type(cause).__name__}: {describe(cause)}; is it up and reachable from here?"
        return Transient(ModelUnavailable(self._text(text)))

    def of_reply(self, error: Exception) -> ModelError | Transient:
        """Something came back that is not a whole reply, or an error inside of one."""
        if isinstance(error, BrokenReply) and error.status is not None:
            return self._failure(str(error), error.status)
        return Transient(ModelUnavailable(self._text(f"no reply of the Messages API: {error}")))

    def _failure(
        self, text: str, status: int, again: bool | None = None, wait: float | None = None
    ) -> ModelError | Transient:
        passing = status in (408, 409, 429) or status >= 500
        text = self._text(text)
        if passing if again is None else again:
            return Transient(ModelUnavailable(text, status=status), wait)
        if passing:
            return ModelUnavailable(text, status=status)
        if status == 400 and _TOO_LONG.search(text):
            return PromptTooLong(text, status=status)
        return ModelRefused(text, status=status)

    def _text(self, text: str) -> str:
        # A provider that quotes the key it was given would otherwise put it into logs and traces.
        text = f"{self._where}: {text}"
        return mask_text(text.replace(self._key, MASK) if self._key else text)


def _said(body: object) -> tuple[str, str]:
    """The kind and text of an error body; of something else (a proxy's page), its beginning."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        return str(error.get("type", "")), str(error.get("message", ""))
    return "", str(body)[:500] if body is not None else ""
