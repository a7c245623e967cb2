"""Failures of a provider in flowrt's own errors: try again, give up, or cut the prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from flowrt.errors import ModelError, ModelRefused, ModelUnavailable, PromptTooLong, describe
from flowrt.llm.retry import Transient, retry_after
from flowrt.observe.masking import MASK, mask_text

# What providers and the gateways in front of them say of a prompt that does not fit: Anthropic
# (the first two), OpenAI and vLLM, llama.cpp, vLLM, Gemini.
_TOO_LONG = re.compile(
    r"prompt is too long|exceed context limit|model_context_window_exceeded|context window"
    r"|context_length_exceeded|maximum context length"
    r"|exceeds? the available context size|exceed_context_size_error"
    r"|longer than the maximum model length"
    r"|input token count.{0,40} exceeds the maximum",
    re.IGNORECASE,
)

_WAYS_OUT = {
    401: "check the connector's apiKey",
    402: "the account has no credit left; check its plan and billing",
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


class ProviderFailures:
    """Tells the failures of one connector's calls, never with its key in the text.

    The results are to be raised: a `Transient` where the same request may succeed later, else a
    `ModelError`. Texts begin with `where`, as those of other runtimes of the dialect do
    (dialect 8). `api` is what a reply should have come from.
    """

    api = "the API"

    def __init__(self, where: str, key: str) -> None:
        self._where = where
        self._key = key

    def of_answer(
        self,
        text: str,
        status: int,
        headers: Mapping[str, str],
        now: datetime,
        *,
        request_id: str | None = None,
    ) -> ModelError | Transient:
        """A status of 400 or more, with what the headers say of trying again, and the way out."""
        parts = [text]
        if way_out := self.way_out(text, status):
            parts.append(way_out)
        if request_id:
            parts.append(f"request-id {request_id}")
        again = {"true": True, "false": False}.get(headers.get("x-should-retry", ""))
        return self._failure("; ".join(parts), status, again, retry_after(headers, now))

    def way_out(self, text: str, status: int) -> str:
        """What the reader can do about it; empty where nobody knows."""
        return _WAYS_OUT.get(status, "")

    def of_connection(self, error: Exception) -> Transient:
        """The provider was not reached, or the connection broke or was silent for too long."""
        cause = error.__cause__ or error
        text = f"{type(cause).__name__}: {describe(cause)}; is it up and reachable from here?"
        return Transient(ModelUnavailable(self._text(text)))

    def of_reply(self, error: Exception) -> ModelError | Transient:
        """Something came back that is not a whole reply, or an error inside of one."""
        if isinstance(error, BrokenReply) and error.status is not None:
            return self._failure(str(error), error.status)
        return Transient(ModelUnavailable(self._text(f"no reply of {self.api}: {error}")))

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
