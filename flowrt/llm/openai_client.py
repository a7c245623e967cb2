"""The HTTP side of whatever speaks OpenAI's API, over the official SDK.

The SDK does connections, authentication and headers. Its typed objects are passed by and its
retries are off, for the reasons that `flowrt.llm.anthropic` gives.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from flowrt.clock import Clock, SystemClock
from flowrt.errors import ConnectorError, ModelUnavailable, RequestInvalid
from flowrt.llm.openai_errors import Failures

if TYPE_CHECKING:
    import httpx2
    import openai

_CONNECT_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Access:
    """Where a connector's server is and how it is asked.

    `kind` is the connector's type in YAML and `provider` the name in traces. `timeout` is the
    longest silence in seconds, and the longest time that retries may begin in. `max_retries` is how
    often a call is sent again after 408, 409, 429, 5xx, an error inside a stream, or a broken
    connection.
    """

    name: str
    api_key: str = field(repr=False)
    base_url: str
    kind: str = "llm-openai"
    provider: str = "OPENAI"
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 600.0
    max_retries: int = 2
    clock: Clock = field(default_factory=SystemClock)


class OpenAIClient:
    """The connections of one connector, for its chat model and its embedding model.

    The SDK takes most of a second to import, so that happens at `start` or at the first call, in a
    thread. After `close` it can be started again, also in another event loop.

    Raises `ConnectorError` for a key that no HTTP header can hold.
    """

    def __init__(self, access: Access) -> None:
        self.access = access
        # A key read from a file ends in a newline more often than not.
        self.key = access.api_key.strip()
        if not (self.key.isascii() and self.key.isprintable()):
            raise ConnectorError(
                f"connector {access.name!r}: apiKey holds characters that no HTTP header can "
                "carry; copy the key again"
            )
        self._sdk: openai.AsyncOpenAI | None = None
        self._opening = threading.Lock()

    def require(self) -> None:
        """Raise `ConnectorError` where the SDK is not installed; imports nothing."""
        if find_spec("openai") is None:
            raise ConnectorError(
                f"connector {self.access.name!r}: {self.access.kind} needs the OpenAI SDK, which "
                "is not installed; pip install 'flowrt[openai]'"
            )

    async def start(self) -> None:
        """Import the SDK and make its client. May be repeated.

        Raises `ConnectorError` where the SDK is not installed.
        """
        await self.sdk()

    async def sdk(self) -> openai.AsyncOpenAI:
        """The SDK's client. A call gets it once: its retries end with it when `close` does.

        Raises `ConnectorError` where the SDK is not installed.
        """
        if self._sdk is None:
            return await asyncio.to_thread(self._make_sdk)
        return self._sdk

    async def close(self) -> None:
        """Close the connections. Calls under way fail."""
        sdk, self._sdk = self._sdk, None
        if sdk is not None:
            await sdk.close()

    def failures(self, what: str, path: str) -> Failures:
        """What tells the failures of calls of `path`; `what` is `stream` or `embed`."""
        access = self.access
        url = access.base_url.rstrip("/") + path
        return Failures(access.kind, access.name, what, url, self.key)

    @asynccontextmanager
    async def post(
        self, sdk: openai.AsyncOpenAI, path: str, body: dict[str, Any], failures: Failures
    ) -> AsyncIterator[httpx2.Response]:
        """The response to `body`, closed at the end. What the SDK raises is told in our errors."""
        import httpx2
        import openai

        if sdk.is_closed():  # a retry would end in a RuntimeError of the SDK
            raise ModelUnavailable(f"connector {self.access.name!r} was stopped during the call")
        try:
            sent = await sdk.post(
                path,
                cast_to=httpx2.Response,
                body=body,
                stream=body.get("stream", False),
                stream_cls=openai.AsyncStream[Any],
            )
        except UnicodeEncodeError as error:
            raise RequestInvalid(f"the request holds text that is not Unicode: {error}") from error
        except openai.APIStatusError as error:
            raise failures.of_status(error, self.access.clock.now()) from error
        except openai.APIConnectionError as error:
            raise failures.of_connection(error) from error
        response = cast("httpx2.Response", sent)  # asked for with `cast_to`, streaming or not
        try:
            yield response
        finally:
            await response.aclose()

    def _make_sdk(self) -> openai.AsyncOpenAI:
        self.require()
        import openai

        access = self.access
        with self._opening:
            if self._sdk is None:
                self._sdk = openai.AsyncOpenAI(
                    api_key=self.key,
                    base_url=access.base_url,
                    default_headers=dict(access.headers),
                    max_retries=0,
                    timeout=openai.Timeout(
                        access.timeout, connect=min(access.timeout, _CONNECT_TIMEOUT)
                    ),
                )
            return self._sdk
